"""Defines FindCoordinator (KIP-98, KIP-699, KIP-932), which finds the coordinator of a key."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest(Message):
    """Requests the coordinator of one key; from version 4, of several keys.

    `key_type` is 0 for a group, 1 for a transactional id, 2 for a share partition.
    """

    key: str = wire(WireType.STRING, "0-3")
    key_type: int = wire(WireType.INT8, "1+")
    coordinator_keys: tuple[str, ...] = wire(ArrayOf(WireType.STRING), "4+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator(Message):
    """Represents the coordinator of one key, or the error."""

    key: str = wire(WireType.STRING, "4+")
    node_id: int = wire(WireType.INT32, "4+")
    host: str = wire(WireType.STRING, "4+")
    port: int = wire(WireType.INT32, "4+")
    error_code: int = wire(WireType.INT16, "4+")
    error_message: str | None = wire(WireType.STRING, "4+", nullable="4+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse(Message):
    """Represents one result; from version 4, a result for each key."""

    throttle_time_ms: int = wire(WireType.INT32, "1+")
    error_code: int = wire(WireType.INT16, "0-3")
    error_message: str | None = wire(WireType.STRING, "1-3", nullable="1-3")
    node_id: int = wire(WireType.INT32, "0-3")
    host: str = wire(WireType.STRING, "0-3")
    port: int = wire(WireType.INT32, "0-3")
    coordinators: tuple[Coordinator, ...] = wire(ArrayOf(Coordinator), "4+")


FIND_COORDINATOR = Api(
    key=10,
    name="FindCoordinator",
    versions=Versions.parse("0-6"),
    flexible=Versions.parse("3+"),
    request=FindCoordinatorRequest,
    response=FindCoordinatorResponse,
)
