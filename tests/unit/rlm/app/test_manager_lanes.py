"""What the account of offload segments says of the manager's store."""

from __future__ import annotations

import pytest

from rlm.app.manager_lanes import store_properties
from rsm.config.storage import parse_storage

S3 = {
    "rsm.config.storage.backend": "s3",
    "rsm.config.storage.s3.bucket.name": "logs",
    "rsm.config.storage.s3.region": "eu-west-1",
    "rsm.config.key.prefix": "prod",
}
PLUGIN = {"rsm.config.storage.backend": "acme.stores:Tape"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (S3, {"backend": "s3", "prefix": "prod", "bucket": "logs", "region": "eu-west-1"}),
        (PLUGIN, {"backend": "acme.stores:Tape", "prefix": ""}),
    ],
)
def test_store_when_it_is_accounted_then_backend_prefix_and_what_is_known_of_it(
    values: dict[str, str], expected: dict[str, str]
) -> None:
    found = store_properties(parse_storage(values))

    assert {each.name: each.value for each in found} == expected
