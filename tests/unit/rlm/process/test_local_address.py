from __future__ import annotations

import pytest

from rlm.process.local_address import local_address_towards
from rsm.segment.errors import RetriableError


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_local_address_when_towards_this_host_then_a_loopback_one(host: str) -> None:
    assert local_address_towards(host, 9092) in {"127.0.0.1", "::1"}


def test_local_address_when_the_name_does_not_resolve_then_retriable_and_names_it() -> None:
    with pytest.raises(RetriableError) as raised:
        local_address_towards("no-such-host.invalid", 9092)

    assert raised.value.context["address"] == "no-such-host.invalid:9092"
