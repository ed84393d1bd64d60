"""Computes the progress of a partition's requested offload. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rlm.operator.offload import CopyProgress
from rsm.segment.ids import TopicIdPartition


class OffloadState(Enum):
    """Represents the state of an offload. UNKNOWN: the leader's manager does not answer."""

    NOT_REQUESTED = "not requested"
    DONE = "done"
    COPYING = "copying"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadStatus:
    """Represents one partition's offload; a value is None if unknown or not requested.

    `reason` says what blocks the copies, or why the manager does not answer. `lag_segments` and
    `lag_bytes` cover all rolled segments that are not stored, even beyond the requested offset.
    """

    partition: TopicIdPartition
    state: OffloadState
    reason: str = ""
    requested_offset: int | None = None
    stored_end_offset: int | None = None
    lag_segments: int | None = None
    lag_bytes: int | None = None

    @property
    def is_complete(self) -> bool:
        """Return whether everything requested is stored; True if nothing is requested."""
        return self.state in {OffloadState.NOT_REQUESTED, OffloadState.DONE}


def offload_status(
    partition: TopicIdPartition,
    requested_offset: int | None,
    progress: CopyProgress | None,
    silence: str,
) -> OffloadStatus:
    """Return the status of the newest request; `silence` is why `progress` is None."""
    if progress is None:
        is_requested = requested_offset is not None
        return OffloadStatus(
            partition=partition,
            state=OffloadState.UNKNOWN if is_requested else OffloadState.NOT_REQUESTED,
            reason=silence,
            requested_offset=requested_offset,
        )
    state, reason = _state(requested_offset, progress)
    return OffloadStatus(
        partition=partition,
        state=state,
        reason=reason,
        requested_offset=requested_offset,
        stored_end_offset=progress.stored_end_offset,
        lag_segments=progress.lag_segments,
        lag_bytes=progress.lag_bytes,
    )


def _state(requested_offset: int | None, progress: CopyProgress) -> tuple[OffloadState, str]:
    if requested_offset is None:
        return OffloadState.NOT_REQUESTED, ""
    is_read = progress.requested_offset >= requested_offset
    target_offset = requested_offset
    if is_read and progress.requested_end_offset is not None:
        # The manager stores only segments wholly before the requested offset.
        target_offset = min(requested_offset, progress.requested_end_offset)
    if progress.stored_end_offset >= target_offset:
        return OffloadState.DONE, ""
    if is_read and progress.blocked:
        return OffloadState.BLOCKED, progress.blocked
    return OffloadState.COPYING, ""
