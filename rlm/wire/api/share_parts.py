"""What ShareFetch and ShareAcknowledge say in the same words (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import ArrayOf, Message, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgementBatch(Message):
    """What became of a range of offsets; one type for all, or one for each."""

    first_offset: int = wire(WireType.INT64, "0+")
    last_offset: int = wire(WireType.INT64, "0+")
    acknowledge_types: tuple[int, ...] = wire(ArrayOf(WireType.INT8), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch(Message):
    """The leader that the asked broker knows of."""

    leader_id: int = wire(WireType.INT32, "0+")
    leader_epoch: int = wire(WireType.INT32, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint(Message):
    """Where a leader hint leads."""

    node_id: int = wire(WireType.INT32, "0+")
    host: str = wire(WireType.STRING, "0+")
    port: int = wire(WireType.INT32, "0+")
    rack: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
