"""Finds the losses of a partition's log, from the metadata and the leader's log. Pure.

Two events lose records. An unclean election cuts off stored records and those after them; by
default, `rlm` then trims and expires nothing. An external start moves the broker's log start; `rlm`
does not guess a new log start. An operator accepts either loss with `rlm topic resolve`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rlmm.state.partition_state import PartitionState
from rsm.segment.coverage import StoredRange, stored_ranges
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """Represents stored segments that an election cut off wholly or in part.

    `leader_epoch` is the newest epoch that wrote any of them. `start_offset` is the first offset
    that is no longer in the log, `end_offset` the end offset of the last segment.
    """

    leader_epoch: int
    start_offset: int
    end_offset: int
    segment_count: int


def cut_off(
    lineage: Lineage,
    stored: Sequence[StoredRange],
    segments: Iterable[RemoteLogSegmentMetadata],
    state: PartitionState,
) -> CutOff | None:
    """Return the `CutOff` above the log start that no operator accepted; None if there is none."""
    log_start_offset = state.log_start_offset or 0
    found = [
        (end_offset, metadata)
        for end_offset, metadata in contradicted(lineage, stored, segments)
        if metadata.offsets.end_offset > log_start_offset
        and metadata.segment_leader_epochs.entries[-1].epoch > state.accepted_loss_epoch
    ]
    if not found:
        return None
    return CutOff(
        leader_epoch=max(each.segment_leader_epochs.entries[-1].epoch for _, each in found),
        start_offset=min(start for start, _ in found),
        end_offset=max(each.offsets.end_offset for _, each in found),
        segment_count=len(found),
    )


def contradicted(
    lineage: Lineage,
    stored: Sequence[StoredRange],
    segments: Iterable[RemoteLogSegmentMetadata],
) -> Iterator[tuple[int, RemoteLogSegmentMetadata]]:
    """Yield finished segments that an election cut off, each with its first lost offset.

    Considers only segments whose offsets the lineage covers: a lineage that does not reach back to
    a segment does not contradict it.
    """
    readable_ends = {part.metadata.segment_id: part.offsets.end_offset for part in stored}
    known_from = next((entry.start_offset for entry in lineage.entries), None)
    for metadata in segments:
        begin = metadata.segment_leader_epochs.entries[0].start_offset
        end_offset = readable_ends.get(metadata.segment_id, begin)
        is_cut = (
            metadata.state is SegmentState.COPY_SEGMENT_FINISHED
            and end_offset < metadata.offsets.end_offset
        )
        if is_cut and known_from is not None and known_from <= begin:
            yield end_offset, metadata


def moved_by_others(state: PartitionState, local_start_offset: int) -> int | None:
    """Return the last local start that `rlm` set if the local log starts above it; else None."""
    own_starts = [o for o in (state.trimmed_offset, state.first_readable_offset) if o is not None]
    return max(own_starts) if own_starts and local_start_offset > max(own_starts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Represents losses that an operator can accept.

    `moved_from_offset` is the last local start that `rlm` set; None if there is no external start.
    """

    cut_off: CutOff | None
    moved_from_offset: int | None
    local_start_offset: int

    @property
    def has_losses(self) -> bool:
        return self.cut_off is not None or self.moved_from_offset is not None


def losses(
    state: PartitionState,
    segments: Sequence[RemoteLogSegmentMetadata],
    local_start_offset: int,
    *,
    with_accepted_start: bool = False,
) -> Losses:
    """Return the losses that the metadata and the leader's local start show.

    `with_accepted_start` includes an accepted external start until the log start has moved there.
    """
    moved_from = moved_by_others(state, local_start_offset)
    if not with_accepted_start and local_start_offset <= state.accepted_start_offset:
        moved_from = None
    return Losses(
        cut_off=cut_off(state.lineage, stored_ranges(state.lineage, segments), segments, state),
        moved_from_offset=moved_from,
        local_start_offset=local_start_offset,
    )
