from __future__ import annotations

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.cluster_topics import MAX_TIMEOUT_MS, find_partitions


def test_find_when_the_client_does_not_take_the_timeout_then_reported_and_nobody_is_asked() -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1"}

    with pytest.raises(InvalidConfigError, match=f"expected=at most {MAX_TIMEOUT_MS} ms"):
        find_partitions(nobody, ["orders"], timeout_ms=MAX_TIMEOUT_MS + 1)


def test_find_when_the_address_of_the_brokers_has_a_password_then_the_error_does_not_show_it() -> (
    None
):
    client = {"bootstrap.servers": "user:hidden@127.0.0.1:1"}

    with pytest.raises(InvalidConfigError, match="the brokers do not answer") as refused:
        find_partitions(client, ["orders"], timeout_ms=100)

    assert "hidden" not in str(refused.value)
    assert "@127.0.0.1:1" in str(refused.value)
