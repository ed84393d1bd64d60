"""Represents the account of a partition's offload segments (PIP-76). Pure.

An offload segment is assigned before its first byte is written, and ends as offloaded or failed.
The records of stored segments show how far it is stored, and only they decide what may be deleted.
`rlm` uses the account only for display, and to select segments for
`rlm segments delete --streamed`.
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
    """The status of an offload segment; the value is its number in records."""

    ASSIGNED = 1
    OFFLOADED = 2
    FAILED = 3


STATUS_ORDER = (
    OffloadSegmentStatus.ASSIGNED,
    OffloadSegmentStatus.FAILED,
    OffloadSegmentStatus.OFFLOADED,
)
"""The statuses, the furthest last. An offloaded segment stays offloaded despite later records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadPosition:
    """The position of a batch in a log.

    `ledger_id` is the base offset of the local log segment, and `entry_id` the number of the batch
    in it. `offset` is the first offset of the batch. The constructor raises ValueError if a number
    is negative.
    """

    ledger_id: int
    entry_id: int
    offset: int

    def __post_init__(self) -> None:
        if min(self.ledger_id, self.entry_id, self.offset) < 0:
            raise ValueError(f"the position is invalid: a number is negative ({self})")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProperty:
    """One property of the location of the data, such as the bucket (PIP-76's driver metadata)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadSegmentRecord:
    """An offload segment in its current status.

    `id` is also the id of the first stored segment in `segment_ids`; the account is removed
    together with that segment. `objects` are the names of all objects that the stored segments may
    have, as `short_keys` returns them: the chunks of a segment share one name. Records of earlier
    versions contain no names. `begin` is the position of the first batch, and `end` the position
    after the last batch. Only an offloaded segment has `end` and `offloaded_ms`. If the local log
    no longer contained the end, `end.ledger_id` is the end offset, and `end.entry_id` is 0. Times
    are the writer's wall-clock times. The constructor raises ValueError for invalid values.
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
            raise ValueError(
                "the offload segment is invalid: expected 1 to "
                f"{STORED_SEGMENTS_MAX_COUNT} stored segments, the first one with the id {self.id} "
                f"({self.segment_ids})"
            )
        if len(self.driver_metadata) > DRIVER_PROPERTIES_MAX_COUNT:
            raise ValueError(
                "the offload segment is invalid: it has more than "
                f"{DRIVER_PROPERTIES_MAX_COUNT} driver properties"
            )
        if len(self.objects) > OBJECTS_MAX_COUNT:
            raise ValueError(
                f"the offload segment is invalid: it has more than {OBJECTS_MAX_COUNT} objects"
            )
        is_offloaded = self.status is OffloadSegmentStatus.OFFLOADED
        if (self.end is not None, self.offloaded_ms is not None) != (is_offloaded, is_offloaded):
            raise ValueError(
                "the offload segment is invalid: it must have an end and an end time if it is "
                f"OFFLOADED, and neither otherwise (status={self.status.name}, end={self.end}, "
                f"offloaded_ms={self.offloaded_ms})"
            )
        if self.assigned_ms < 0 or (self.offloaded_ms or 0) < 0:
            raise ValueError(
                "the offload segment is invalid: a time is negative "
                f"(assigned_ms={self.assigned_ms}, offloaded_ms={self.offloaded_ms})"
            )
        if self.end is not None and self.end.offset <= self.begin.offset:
            raise ValueError(
                "the offload segment is invalid: its end is not above its begin "
                f"(begin={self.begin}, end={self.end})"
            )

    def precedes(self, other: OffloadSegmentRecord) -> bool:
        """Return whether `other`, a record of the same segment, has a later status."""
        return STATUS_ORDER.index(self.status) < STATUS_ORDER.index(other.status)

    def reached(self, later: OffloadSegmentRecord) -> OffloadSegmentRecord:
        """Return this segment with the status, end and end time of a later record.

        Returns this segment unchanged if the later end is not above the begin: that record belongs
        to another segment.
        """
        if later.end is not None and later.end.offset <= self.begin.offset:
            return self
        return replace(self, status=later.status, end=later.end, offloaded_ms=later.offloaded_ms)
