"""Defines DescribeCluster (KIP-700, KIP-919, KIP-1073), which lists brokers or controllers."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterRequest(Message):
    """Requests brokers if `endpoint_type` is 1, controllers if it is 2."""

    include_cluster_authorized_operations: bool = wire(WireType.BOOLEAN, "0+")
    endpoint_type: int = wire(WireType.INT8, "1+", default=1)
    include_fenced_brokers: bool = wire(WireType.BOOLEAN, "2+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterBroker(Message):
    """Represents a broker and its address on the listener that received the request."""

    broker_id: int = wire(WireType.INT32, "0+")
    host: str = wire(WireType.STRING, "0+")
    port: int = wire(WireType.INT32, "0+")
    rack: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    is_fenced: bool = wire(WireType.BOOLEAN, "2+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterResponse(Message):
    """Represents the cluster as the responding broker sees it now."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    endpoint_type: int = wire(WireType.INT8, "1+", default=1)
    cluster_id: str = wire(WireType.STRING, "0+")
    controller_id: int = wire(WireType.INT32, "0+", default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = wire(ArrayOf(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = wire(WireType.INT32, "0+", default=-2147483648)


DESCRIBE_CLUSTER = Api(
    key=60,
    name="DescribeCluster",
    versions=Versions.parse("0-2"),
    flexible=Versions.parse("0+"),
    request=DescribeClusterRequest,
    response=DescribeClusterResponse,
)
