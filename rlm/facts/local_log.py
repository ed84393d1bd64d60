"""Represents one partition's local log: its files, copyable ranges, and positions. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledSegment:
    """Represents a rolled segment file, or the rest of the file from an offset.

    `offsets` ends at the base offset of the next file. The rest of a file is read in whole batches,
    from the one that contains its start. `size_bytes` and the times are those of the whole file.
    `max_timestamp_ms` is Kafka's LogSegment.largestTimestamp: the file's modification time if no
    record has a timestamp. `rolled_ms` is when the broker rolled the file, by this host's clock.
    """

    file_base_offset: int
    offsets: OffsetRange
    size_bytes: int
    max_timestamp_ms: int
    rolled_ms: int

    @property
    def is_whole_file(self) -> bool:
        return self.offsets.start_offset == self.file_base_offset

    def rest(self, start_offset: int) -> RolledSegment:
        """Return the rest of the segment from `start_offset`."""
        return replace(self, offsets=replace(self.offsets, start_offset=start_offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTail:
    """Represents committed records of the active segment's file, which the broker still writes.

    `offsets` is the requested range. Records below its end cannot change. The tail is read in whole
    batches. `size_bytes` is the size of the file, which may have grown since.
    """

    file_base_offset: int
    offsets: OffsetRange
    size_bytes: int

    @property
    def is_whole_file(self) -> bool:
        return False  # The file still grows.


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """Represents the offset at which a reader of a log continues.

    In the file of `file_base_offset`, the offset's batch begins at `position`, after `entry_id`
    batches. If `file_base_offset` is -1, the reader searches for the offset.
    """

    offset: int
    file_base_offset: int = -1
    position: int = 0
    entry_id: int = 0


LocalSegment = RolledSegment | CommittedTail
"""A range of the local log that can be copied as a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLog:
    """Represents a partition's log directory, as one listing shows it.

    The `rolled` segments are ascending and adjacent. The active segment begins at
    `active_base_offset`, has `active_size_bytes`, and was last written at `active_written_ms`.
    `checkpoint` is the leader-epoch checkpoint. It may contain stale entries, but lacks none.
    """

    rolled: tuple[RolledSegment, ...]
    active_base_offset: int
    active_size_bytes: int
    active_written_ms: int
    checkpoint: Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFileSize:
    """Represents the size of one log file, rolled or active."""

    base_offset: int
    size_bytes: int
