"""Decides whether and from where a partition may be streamed, and when a stream is due. Pure.

A stream opens late: only when the unstored records fill a part of an upload, have waited for the
rollover time, or are requested. Until then, a partition with little data needs no open upload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from rlm.facts.local_log import LogFileSize, LogPosition
from rlm.policy.candidates import copying_forbidden
from rlm.policy.leftovers import unfenced_streams
from rlm.policy.view import PartitionView
from rsm.segment.offload_settings import OffloadSettings

OPEN_BYTES = 8 << 20
"""This much unstored data opens a stream before the rollover time: about a part of an upload."""

_SHORTEST_INTERVAL_MS = 200
_SHORTEST_PART_MS = 50
_LONGEST_INTERVAL_MS = 5_000


class DueReason(Enum):
    """Represents why a stream opens."""

    SIZE = "size"
    TIME = "time"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPermit:
    """Represents the permission to stream a partition from `begin_offset`.

    `stored_from_offset` is the first stored offset above `begin_offset`; a stream that passes it
    would store records twice. All records below `requested_offset` must be stored now (PIP-17's
    manual trigger). After an unclean election, the log may end below `requested_offset`; the
    request then waits for later records.
    """

    begin_offset: int
    limits: OffloadSettings
    stored_from_offset: int | None = None
    requested_offset: int = 0


def stream_permit(view: PartitionView) -> StreamPermit | None:
    """Return the permission to stream a partition; None if something forbids it.

    The stream starts at the end of the offsets that are stored contiguously, so the history of a
    log is streamed first (PIP-76). It waits until abandoned streams of other processes are fenced.
    """
    if not view.is_streamed or not view.is_store_reachable or copying_forbidden(view) is not None:
        return None
    if unfenced_streams(view):
        return None
    begin_offset = view.covered_end_offset
    above = (
        part.offsets.start_offset
        for part in view.stored
        if part.offsets.start_offset > begin_offset
    )
    return StreamPermit(
        begin_offset=begin_offset,
        limits=view.offload,
        stored_from_offset=min(above, default=None),
        requested_offset=view.state.offload_requested_offset or 0,
    )


def waited_before_ms(view: PartitionView) -> int:
    """Return how long the oldest unstored record may have waited, by the brokers' clock.

    A process that has not seen the partition before starts its count with this time, at most one
    rollover time. Otherwise, each restart would postpone the end of the segment. The wait began
    when the stored segment that ends at this record was finished. If there is no such segment, the
    result is one rollover time. Returns 0 when tiering begins, or if the log is not streamed.
    """
    rollover_ms = view.offload.segment_rollover_ms
    if not view.is_streamed or view.state.log_start_offset is None:
        return 0
    stored = {
        part.metadata.segment_id
        for part in view.stored
        if part.offsets.end_offset == view.covered_end_offset
    }
    finished_ms = (e.changed_ms for e in view.segments if e.metadata.segment_id in stored)
    since_ms = min(finished_ms, default=view.moment.broker_ms - rollover_ms)
    return min(max(0, view.moment.broker_ms - since_ms), rollover_ms)


def check_interval_ms(rollover_ms: int, *, grown_bytes: int = 0, during_ms: int = 0) -> int:
    """Return how long to wait before the next check for new records.

    That is a fifth of the rollover time, within bounds. If the log grew during the last interval,
    the wait is at most the time in which it grows by about one part of an upload. Larger pieces
    would use the CPUs, which the broker needs too, for longer at a time.
    """
    longest_ms = min(max(rollover_ms // 5, _SHORTEST_INTERVAL_MS), _LONGEST_INTERVAL_MS)
    if grown_bytes <= 0:
        return longest_ms
    part_ms = during_ms * OPEN_BYTES // grown_bytes
    return min(max(part_ms, _SHORTEST_PART_MS), longest_ms)


def counted_from(files: Sequence[LogFileSize], begin: LogPosition) -> LogPosition:
    """Return the position above which bytes count as unstored.

    The first of `files` contains `begin`. If the position of `begin` in that file is not known, the
    current bytes of that file do not count. Otherwise, all bytes of a large file would count,
    although most of them may be stored.
    """
    first = files[0]
    if begin.file_base_offset == first.base_offset or begin.offset <= first.base_offset:
        return begin
    return replace(begin, file_base_offset=first.base_offset, position=first.size_bytes)


def unstored_bytes(files: Sequence[LogFileSize], begin: LogPosition) -> int:
    """Return the size of the log above `begin`; `counted_from` describes the arguments."""
    is_within = begin.file_base_offset == files[0].base_offset
    return max(0, sum(each.size_bytes for each in files) - (begin.position if is_within else 0))


def due_because(
    permit: StreamPermit,
    *,
    begin_offset: int,
    committed_end_offset: int,
    unstored_bytes: int,
    waited_ms: int,
    is_any_free: bool = True,
) -> DueReason | None:
    """Return why a stream from `begin_offset` must open now; None if it need not.

    `waited_ms` is how long the oldest unstored record has been known. If no slot is free
    (`is_any_free`), another stream would have to end first. So the records wait for the rollover
    time, or until they fill a segment: partitions that take slots from each other would write only
    small objects.
    """
    if committed_end_offset <= begin_offset:
        return None
    if begin_offset < permit.requested_offset <= committed_end_offset:
        return DueReason.REQUESTED
    if waited_ms >= permit.limits.segment_rollover_ms:
        return DueReason.TIME
    wanted_bytes = permit.limits.segment_max_bytes
    if unstored_bytes >= (min(OPEN_BYTES, wanted_bytes) if is_any_free else wanted_bytes):
        return DueReason.SIZE
    return None
