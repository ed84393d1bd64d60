"""The account of a partition's offload segments (PIP-76). Pure.

An offload segment is assigned before its first byte is written, and ends as offloaded or failed.
The records of segments show what is stored of it, and only they decide what may be deleted. The
account is only for display, and to select the segments of `rlm segments delete --streamed`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from rsm.segment.metadata import Writer

DRIVER_PROPERTIES_MAX_COUNT = 32
STORED_SEGMENTS_MAX_COUNT = 256
OBJECTS_MAX_COUNT = 256


class OffloadSegmentStatus(Enum):
    """How far an offload segment is; the value is the status's number."""

    ASSIGNED = 1
    OFFLOADED = 2
    FAILED = 3


STATUS_ORDER = (
    OffloadSegmentStatus.ASSIGNED,
    OffloadSegmentStatus.FAILED,
    OffloadSegmentStatus.OFFLOADED,
)
"""The statuses, the furthest last: what is offloaded stays so, whatever is recorded later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadPosition:
    """A position in a log: local log segment, batch and record.

    `ledger_id` is the base offset of the local log segment, and `entry_id` the number of a batch in
    it. `offset` is the first offset of that batch. Raises ValueError.
    """

    ledger_id: int
    entry_id: int
    offset: int

    def __post_init__(self) -> None:
        if min(self.ledger_id, self.entry_id, self.offset) < 0:
            raise ValueError(f"a position is negative: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProperty:
    """A part of what locates the data, such as the bucket (PIP-76's driver metadata)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadSegmentRecord:
    """An offload segment in its current status.

    `id` is also the id of the first stored segment in `segment_ids`, with which the account is
    removed. `objects` are the names of all objects that the stored segments may have, as
    `short_keys` gives them: several chunks share one name. Records of earlier versions have none.
    `begin` is the position of the first batch, and `end` the one after the last batch. Only an
    offloaded segment has `end` and `offloaded_ms`. If the log did not show the end any more, `end`
    has its offset as ledger id, and entry 0. Times are the writer's. Raises ValueError.
    """

    id: UUID
    status: OffloadSegmentStatus
    writer: Writer
    assigned_ms: int
    begin: OffloadPosition
    segment_ids: tuple[UUID, ...]
    driver_metadata: tuple[DriverProperty, ...] = ()
    objects: tuple[str, ...] = ()
    offloaded_ms: int | None = None
    end: OffloadPosition | None = None

    def __post_init__(self) -> None:
        if self.segment_ids[:1] != (self.id,) or len(self.segment_ids) > STORED_SEGMENTS_MAX_COUNT:
            raise ValueError(f"an offload segment has wrong stored segments: {self.segment_ids}")
        if len(self.driver_metadata) > DRIVER_PROPERTIES_MAX_COUNT:
            raise ValueError(f"a driver has over {DRIVER_PROPERTIES_MAX_COUNT} properties")
        if len(self.objects) > OBJECTS_MAX_COUNT:
            raise ValueError(f"an offload segment has over {OBJECTS_MAX_COUNT} objects")
        is_offloaded = self.status is OffloadSegmentStatus.OFFLOADED
        if (self.end is not None, self.offloaded_ms is not None) != (is_offloaded, is_offloaded):
            raise ValueError(
                f"an offload segment that is {self.status.name} cannot end at {self.end}"
            )
        if self.assigned_ms < 0 or (self.offloaded_ms or 0) < 0:
            raise ValueError(
                f"a time of an offload segment is negative: {self.assigned_ms}, {self.offloaded_ms}"
            )
        if self.end is not None and self.end.offset <= self.begin.offset:
            raise ValueError(f"an offload segment has no offsets: {self.begin}, {self.end}")

    def precedes(self, other: OffloadSegmentRecord) -> bool:
        """Return whether `other`, of the same segment, is further."""
        return STATUS_ORDER.index(self.status) < STATUS_ORDER.index(other.status)

    def reached(self, later: OffloadSegmentRecord) -> OffloadSegmentRecord:
        """Return this segment with the status, end and end time of a later record.

        An end that is not above the begin is of another segment; that record changes nothing.
        """
        if later.end is not None and later.end.offset <= self.begin.offset:
            return self
        return replace(self, status=later.status, end=later.end, offloaded_ms=later.offloaded_ms)
