"""What error messages show of addresses."""

from __future__ import annotations

import pytest

from rsm.config.section import section_problems
from rsm.config.storage import StorageConfig
from rsm.secret_keys import without_credentials


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://user:hidden@host:9000", "http://(not shown)@host:9000"),
        ("http://user:hid/d@en@host:9000", "http://(not shown)@host:9000"),
        ("user:hidden@host:9092", "(not shown)@host:9092"),
        ("a:hidden@host1:9092,b:hidden@host2:9092", "(not shown)@host2:9092"),
        ("http://host:9000", "http://host:9000"),
        ("host1:9092, host2:9092", "host1:9092, host2:9092"),
        ("", ""),
    ],
)
def test_address_when_it_has_credentials_then_they_are_masked(address: str, shown: str) -> None:
    assert without_credentials(address) == shown


def test_setting_when_its_invalid_address_has_a_password_then_the_error_does_not_show_it() -> None:
    key = "rsm.config.storage.s3.endpoint.url"

    problems = section_problems(StorageConfig, {key: "http://user:hidden@host:9000"})

    (problem,) = (str(each) for each in problems if each.context["key"] == key)
    assert "hidden" not in problem
    assert "http://(not shown)@host:9000" in problem
