"""The addresses of the endpoints of a cluster's brokers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.config.values import HostPort
from rlm.gateway.endpoints.endpoint_addresses import EndpointAddresses
from rsm.segment.errors import InvalidConfigError

BOUND = HostPort(host="::", port=19_092)
TOLD = HostPort(host="gateway", port=29_092)


@given(node_id=st.integers(0, 36_442))
def test_endpoint_when_not_mapped_then_follows_the_bootstrap_endpoint_here_and_for_clients(
    node_id: int,
) -> None:
    """R16: one port per broker served, port + 1 + node id."""
    plan = EndpointAddresses(bootstrap=BOUND, advertised=TOLD)

    listener = plan.listener_of(node_id)

    assert listener == HostPort(host="::", port=19_093 + node_id)
    address = plan.address_of(node_id, bound_port=listener.port)
    assert address == HostPort(host="gateway", port=29_093 + node_id)


@pytest.mark.parametrize("node_id", [36_443, 2**31 - 1])
def test_endpoint_when_no_port_is_left_then_says_how_to_map_one(node_id: int) -> None:
    plan = EndpointAddresses(bootstrap=TOLD, advertised=TOLD)

    with pytest.raises(InvalidConfigError, match=r"gateway\.node\.listeners"):
        plan.listener_of(node_id)


def test_endpoint_when_mapped_then_bound_as_mapped_and_advertised_on_the_advertised_host() -> None:
    """R16: an explicit map."""
    mapped = {7: HostPort(host="10.0.0.1", port=9107)}
    plan = EndpointAddresses(bootstrap=BOUND, advertised=TOLD, listeners=mapped)

    assert plan.listener_of(7) == mapped[7]
    assert plan.address_of(7, bound_port=9107) == HostPort(host="gateway", port=9107)


def test_endpoint_when_the_map_lacks_the_broker_then_there_is_none() -> None:
    plan = EndpointAddresses(
        bootstrap=BOUND, advertised=TOLD, listeners={7: HostPort(host="h", port=1)}
    )

    with pytest.raises(InvalidConfigError, match=r"no address to listen on.*node_id=8"):
        plan.listener_of(8)


def test_address_when_given_by_setting_then_is_that_whatever_listens() -> None:
    external = HostPort(host="nat.example.com", port=443)
    plan = EndpointAddresses(bootstrap=BOUND, advertised=TOLD, addresses={1: external})

    assert plan.address_of(1, bound_port=19_094) == external
