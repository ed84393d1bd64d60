"""Every response that names a broker redirects clients to gateways."""

from __future__ import annotations

from typing import Any

import pytest

from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlm.gateway.rewriting.addresses import (
    remove_leader_endpoints,
    rewrite_describe_cluster,
    rewrite_find_coordinator,
    rewrite_leader_endpoints,
    scan_metadata,
)
from rlm.wire.api import fetch, produce, share_acknowledge, share_parts
from rlm.wire.api.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from rlm.wire.api.find_coordinator import Coordinator, FindCoordinatorResponse
from rlm.wire.api.metadata import METADATA, MetadataResponse, MetadataResponseBroker
from rlm.wire.frames import read_response, response_parts
from tests.unit.rlm.gateway.gateway_world import OTHER, OWN, GatewayWorld


def _through_scanner(response: MetadataResponse, world: GatewayWorld) -> MetadataResponse:
    frame = b"".join(response_parts(METADATA, 12, response, correlation_id=1))[4:]
    scanner = scan_metadata(12, len(frame), world.context())
    _, read = read_response(METADATA, 12, b"".join(scanner.feed(memoryview(frame))))
    return read


def test_metadata_when_rewritten_then_names_gateways_and_keeps_all_else() -> None:
    """R16."""
    broker = MetadataResponseBroker(node_id=2, host="broker", port=9092, rack="a")
    response = MetadataResponse(brokers=(broker,), cluster_id="c", unknown_tags=((9, b"x"),))

    rewritten = _through_scanner(response, GatewayWorld())

    (found,) = rewritten.brokers
    assert (found.node_id, found.host, found.port, found.rack) == (2, OTHER.host, OTHER.port, "a")
    assert (rewritten.cluster_id, rewritten.unknown_tags) == ("c", ((9, b"x"),))


def test_find_coordinator_when_there_is_none_then_stays() -> None:
    nobody = Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15)
    somebody = Coordinator(key="h", node_id=1, host="broker", port=9092)
    response = FindCoordinatorResponse(coordinators=(nobody, somebody))

    none, found = rewrite_find_coordinator(response, GatewayWorld().context()).coordinators

    assert none == nobody
    assert (found.host, found.port) == (OWN.host, OWN.port)


def test_find_coordinator_when_of_an_old_version_then_its_one_address_is_changed() -> None:
    response = FindCoordinatorResponse(node_id=2, host="broker", port=9092)

    found = rewrite_find_coordinator(response, GatewayWorld().context())

    assert (found.host, found.port) == (OTHER.host, OTHER.port)


def test_describe_cluster_when_of_brokers_then_names_gateways() -> None:
    broker = DescribeClusterBroker(broker_id=1, host="broker", port=9092)
    response = DescribeClusterResponse(endpoint_type=1, brokers=(broker,))

    (found,) = rewrite_describe_cluster(response, GatewayWorld().context()).brokers

    assert (found.host, found.port) == (OWN.host, OWN.port)


def test_describe_cluster_when_of_controllers_then_stays() -> None:
    """R16: controllers have no gateway."""
    controller = DescribeClusterBroker(broker_id=1, host="controller", port=9093)
    response = DescribeClusterResponse(endpoint_type=2, brokers=(controller,))

    assert rewrite_describe_cluster(response, GatewayWorld().context()) == response


@pytest.mark.parametrize(
    "response",
    [
        produce.ProduceResponse(
            node_endpoints=(produce.NodeEndpoint(node_id=2, host="b", port=9092),)
        ),
        share_acknowledge.ShareAcknowledgeResponse(
            node_endpoints=(share_parts.NodeEndpoint(node_id=2, host="b", port=9092),)
        ),
    ],
)
def test_leader_hints_when_of_any_api_then_lead_to_gateways(response: Any) -> None:
    """R16: Produce and ShareAcknowledge carry endpoints (KIP-951)."""
    (found,) = rewrite_leader_endpoints(response, GatewayWorld().context()).node_endpoints

    assert (found.node_id, found.host, found.port) == (2, OTHER.host, OTHER.port)


def test_leader_hints_when_of_fetch_then_have_no_addresses() -> None:
    """R16: another address than that of Metadata confuses the fetch sessions of Java clients."""
    endpoint = fetch.NodeEndpoint(node_id=2, host="b", port=9092)
    hinted = fetch.FetchResponse(session_id=7, node_endpoints=(endpoint,))

    assert remove_leader_endpoints(hinted) == fetch.FetchResponse(session_id=7)


def test_broker_when_redirected_to_directly_then_keeps_its_address() -> None:
    world = GatewayWorld(topology=GatewayTopology(live={1: OWN}, direct_if_unserved=True))
    broker = MetadataResponseBroker(node_id=7, host="broker", port=9092)
    response = MetadataResponse(brokers=(broker,))

    assert _through_scanner(response, world) == response
