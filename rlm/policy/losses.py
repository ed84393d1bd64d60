"""What a partition's log has lost, as the metadata and its leader show it.

Two ways: an unclean election cut off what was stored already, and the rest of it with that; or
somebody moved the broker's log start, who was not us. Either is a person's to look at: nothing is
trimmed or deleted after the first, and the log start is not moved by guess after the second, until
it is accepted (rlm topic resolve).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rlmm.partition_state import PartitionState
from rsm.segment.coverage import StoredRange, stored_ranges
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """Stored segments of which an election cut off all, or the end.

    `leader_epoch`: the newest that wrote any of them; they reach from `start_offset` on, where the
    first is not of the log any more, to `end_offset`.
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
    """What was cut off above the log start and is not accepted; None if nothing."""
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
    """Finished segments that an election cut off, or the end of them, each with where it did.

    Only where the lineage says who wrote the offsets: one that does not reach back to a segment
    does not contradict it.
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
    """Up to where we ourselves moved a local start that lies higher; None if it does not."""
    ours = [o for o in (state.trimmed_offset, state.first_readable_offset) if o is not None]
    return max(ours) if ours and local_start_offset > max(ours) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What is to be accepted of one partition. `moved_from_offset`: our own last local start."""

    cut_off: CutOff | None
    moved_from_offset: int | None
    local_start_offset: int

    @property
    def any_left(self) -> bool:
        return self.cut_off is not None or self.moved_from_offset is not None


def losses(
    state: PartitionState,
    segments: Sequence[RemoteLogSegmentMetadata],
    local_start_offset: int,
    *,
    with_accepted_start: bool = False,
) -> Losses:
    """By the metadata, its lineage included, and by where the leader says that its log begins.

    `with_accepted_start`: also a start that was accepted, as long as the log does not begin there.
    """
    moved_from = moved_by_others(state, local_start_offset)
    if not with_accepted_start and local_start_offset <= state.accepted_start_offset:
        moved_from = None
    return Losses(
        cut_off=cut_off(state.lineage, stored_ranges(state.lineage, segments), segments, state),
        moved_from_offset=moved_from,
        local_start_offset=local_start_offset,
    )
