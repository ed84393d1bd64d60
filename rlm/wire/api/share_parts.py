"""Defines the structures that ShareFetch and ShareAcknowledge share (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import ArrayOf, Message, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgementBatch(Message):
    """Acknowledges a range of offsets, with one type for all offsets or a type for each."""

    first_offset: int = wire(WireType.INT64, "0+")
    last_offset: int = wire(WireType.INT64, "0+")
    acknowledge_types: tuple[int, ...] = wire(ArrayOf(WireType.INT8), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch(Message):
    """Represents the leader that the responding broker knows."""

    leader_id: int = wire(WireType.INT32, "0+")
    leader_epoch: int = wire(WireType.INT32, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint(Message):
    """Represents the address of a leader in a hint."""

    node_id: int = wire(WireType.INT32, "0+")
    host: str = wire(WireType.STRING, "0+")
    port: int = wire(WireType.INT32, "0+")
    rack: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
