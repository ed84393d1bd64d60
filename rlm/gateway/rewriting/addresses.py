"""Rewrites the addresses of brokers in responses, so that clients reach gateways.

A test finds these responses in Kafka's schemas. Node ids stay unchanged, because clients and
brokers identify nodes by their ids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeVar

from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlm.gateway.model.context import GatewayContext
from rlm.wire.api.describe_cluster import DescribeClusterResponse
from rlm.wire.api.fetch import FetchResponse
from rlm.wire.api.find_coordinator import FindCoordinatorResponse
from rlm.wire.api.produce import ProduceResponse
from rlm.wire.api.share_acknowledge import ShareAcknowledgeResponse
from rlm.wire.scanning.metadata_scanner import MetadataScanner
from rlm.wire.scanning.share_fetch_scanner import ShareFetchScanner

_BROKERS = 1  # DescribeCluster's endpoint_type


class _AddressedNode(Protocol):
    """Represents a structure with the address of a node."""

    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


_AddressedNodeT = TypeVar("_AddressedNodeT", bound=_AddressedNode)
_LedT = TypeVar("_LedT", ProduceResponse, ShareAcknowledgeResponse)


def scan_metadata(version: int, frame_bytes: int, context: GatewayContext) -> MetadataScanner:
    """Return a scanner that rewrites the brokers' addresses in a Metadata response."""
    return MetadataScanner(
        version,
        frame_bytes=frame_bytes,
        readdress=lambda broker: _readdressed(broker, context.topology),
    )


def scan_share_fetch(version: int, frame_bytes: int, _context: GatewayContext) -> ShareFetchScanner:
    """Return a scanner that removes the addresses of leader hints from a ShareFetch response."""
    return ShareFetchScanner(version, frame_bytes=frame_bytes)


def rewrite_find_coordinator(
    response: FindCoordinatorResponse, context: GatewayContext
) -> FindCoordinatorResponse:
    """Rewrite each coordinator's address in FindCoordinator; versions below 4 return only one."""
    readdressed = _readdressed(response, context.topology)
    return replace(
        readdressed, coordinators=_all_readdressed(response.coordinators, context.topology)
    )


def rewrite_describe_cluster(
    response: DescribeClusterResponse, context: GatewayContext
) -> DescribeClusterResponse:
    """Rewrite the brokers' addresses in DescribeCluster; those of controllers stay unchanged."""
    if response.endpoint_type != _BROKERS:
        return response
    nodes = ((b, context.topology.address_of(b.broker_id)) for b in response.brokers)
    return replace(
        response,
        brokers=tuple(
            broker if address is None else replace(broker, host=address.host, port=address.port)
            for broker, address in nodes
        ),
    )


def rewrite_leader_endpoints(response: _LedT, context: GatewayContext) -> _LedT:
    """Rewrite the addresses of leader hints in Produce and ShareAcknowledge (KIP-951)."""
    if not response.node_endpoints:
        return response
    endpoints = _all_readdressed(response.node_endpoints, context.topology)
    return replace(response, node_endpoints=endpoints)


def remove_leader_endpoints(response: FetchResponse) -> FetchResponse:
    """Remove the addresses of leader hints from Fetch (KIP-951).

    Clients then use the leader's address from Metadata. While gateways disagree about which other
    gateways are live, a hint's address can differ from the one in Metadata. Kafka's Java consumer
    would then have two nodes with the same id and one fetch session, and would discard responses.
    """
    return replace(response, node_endpoints=()) if response.node_endpoints else response


def _all_readdressed(
    nodes: tuple[_AddressedNodeT, ...], topology: GatewayTopology
) -> tuple[_AddressedNodeT, ...]:
    return tuple(_readdressed(node, topology) for node in nodes)


def _readdressed(node: _AddressedNodeT, topology: GatewayTopology) -> _AddressedNodeT:
    """Rewrite a node's address; a structure without a node, as in an error, stays unchanged."""
    address = topology.address_of(node.node_id) if node.host and node.node_id >= 0 else None
    if address is None:
        return node
    return replace(node, host=address.host, port=address.port)  # type: ignore[type-var]  # all nodes are dataclasses
