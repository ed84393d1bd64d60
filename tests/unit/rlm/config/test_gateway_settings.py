"""The gateway's settings."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rlm.config.sections import GatewayConfig, ProcessConfig
from rlm.config.values import HostPort
from rlmm.registration import LEASE_MS
from rsm.config.section import Section


def _config(key: str, value: str) -> GatewayConfig:
    return GatewayConfig.model_validate({key: value})


def test_gateway_when_nothing_is_set_then_serves_this_host() -> None:
    config = GatewayConfig()

    assert config.listener == HostPort(host="127.0.0.1", port=19092)
    assert not config.direct_if_unserved
    assert (config.heartbeat_interval_ms, config.fetch_max_wait_ms) == (5_000, 500)
    assert config.reader_thread_count == 10


def test_gateway_when_its_listener_is_empty_then_there_is_none() -> None:
    assert _config("gateway.listener", "").listener is None


def test_gateway_when_addresses_are_fixed_then_are_read_by_node() -> None:
    found = _config("gateway.node.addresses", "1=a:1, 2=[::1]:2").node_addresses

    assert found == {1: HostPort(host="a", port=1), 2: HostPort(host="::1", port=2)}


def test_gateway_when_its_heartbeats_would_be_too_rare_for_its_lease_then_is_refused() -> None:
    assert _config("gateway.heartbeat.interval.ms", "7500").heartbeat_interval_ms * 2 == LEASE_MS
    with pytest.raises(ValidationError):
        _config("gateway.heartbeat.interval.ms", "7501")


@pytest.mark.parametrize("text", ["a:1", "1=a", "x=a:1", "1=a:1,1=b:2", "1=a:99999"])
def test_gateway_when_addresses_are_malformed_then_they_are_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        _config("gateway.node.addresses", text)


@pytest.mark.parametrize("text", ["a:1", "1=a", "1=a:1,2=a:1"])
def test_gateway_when_endpoints_are_mapped_wrongly_then_they_are_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        _config("gateway.node.listeners", text)


def test_gateway_when_endpoints_are_mapped_then_the_system_may_choose_several_ports() -> None:
    assert len(_config("gateway.node.listeners", "1=a:0,2=a:0").node_listeners) == 2


@pytest.mark.parametrize("address", ["0.0.0.0:19092", "[::]:19092", "[::ffff:0.0.0.0]:1", "a:0"])
@pytest.mark.parametrize(
    ("section", "key", "prefix"),
    [
        (GatewayConfig, "gateway.advertised.listener", ""),
        (GatewayConfig, "gateway.node.addresses", "1=a:1,2="),
        (ProcessConfig, "rest.advertised.listener", ""),
    ],
)
def test_advertised_address_when_nobody_can_connect_to_it_then_refused_when_it_is_loaded(
    section: type[Section], key: str, prefix: str, address: str
) -> None:
    """Otherwise clients and commands would be sent to that address."""
    section.model_validate({key: f"{prefix}b:1"})
    with pytest.raises(ValidationError, match="that other hosts reach, with a port"):
        section.model_validate({key: f"{prefix}{address}"})


def test_listeners_when_they_are_wildcards_with_any_port_then_are_taken() -> None:
    found = _config("gateway.node.listeners", "1=0.0.0.0:0").node_listeners

    assert found[1].is_unspecified
    assert _config("gateway.listener", "0.0.0.0:0").listener == HostPort(host="0.0.0.0", port=0)  # noqa: S104


def test_chunk_cache_when_it_has_no_room_for_two_chunks_then_is_refused() -> None:
    """A batch can span two chunks; such a gateway could never serve it."""
    chunk = {"rsm.config.chunk.size": "4194304"}

    GatewayConfig.model_validate({**chunk, "rsm.config.fetch.chunk.cache.size": "8388608"})
    with pytest.raises(ValidationError, match=r"at least twice rsm\.config\.chunk\.size=4194304"):
        GatewayConfig.model_validate({**chunk, "rsm.config.fetch.chunk.cache.size": "8388607"})
