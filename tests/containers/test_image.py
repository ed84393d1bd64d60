"""The image of rlm as it is published: its packages are known, and no layer holds a credential."""

from __future__ import annotations

import re

from deploy.debian_components import debian_components
from tests.architecture.credential_forms import credentials_in
from tests.containers.stack import ComposeStack

# Examples of the documentation of packages, constants of librdkafka's own tests, and the headers of
# keys that libraries read.
_KNOWN = re.compile(
    r"/site-packages/(boto3/examples|botocore/data|confluent_kafka\.libs/librdkafka"
    r"|cryptography/hazmat/primitives/serialization|google/auth/crypt)|/libgnutls\.so"
)


def test_image_when_all_its_layers_are_searched_then_hold_no_credential(
    stack: ComposeStack,
) -> None:
    names, found = set(), []
    for name, content in stack.image_content("rlm-1"):
        names.add(name)
        if not _KNOWN.search(name):
            found += [(name, what) for what in credentials_in(content)]

    assert any(name.endswith("/site-packages/rlm/__init__.py") for name in names)
    assert found == []


def test_packages_when_listed_then_the_bill_of_materials_has_those_of_debian(
    stack: ComposeStack,
) -> None:
    components = debian_components(stack.script("packages", "rlm"))

    assert {"base-files", "libc6", "libssl3"} <= {each["name"] for each in components}
