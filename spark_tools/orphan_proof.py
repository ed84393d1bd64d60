"""Whether an object that no metadata names is dead: by what the metadata says around it. Pure.

That the metadata does not know a segment is not enough to delete its objects: the metadata topic
may be another one, or one that was made anew, or the store may be shared with another cluster.
So the partition must be known, and what the object holds must be gone or stored elsewhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rlmm.spi import PartitionState, SegmentRecord
from rsm.layout.keys import LedgerKey, ObjectKey
from rsm.segment.coverage import stored_ranges
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import SegmentState

_DELETED = SegmentState.DELETE_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionKnowledge:
    """All that the metadata says of a partition, for looking up.

    `named`: by its key the segment of each object that is not deleted. `stored_ends`: by ascending
    `stored_starts`, up to where everything that begins there or before reaches.
    """

    state: PartitionState
    states: Mapping[RemoteLogSegmentId, SegmentState]
    named: Mapping[str, RemoteLogSegmentId]
    stored_starts: Sequence[int]
    stored_ends: Sequence[int]

    @classmethod
    def of(cls, state: PartitionState, segments: Iterable[SegmentRecord]) -> PartitionKnowledge:
        """`segments` are those in any state."""
        every = [record.metadata for record in segments]
        stored = stored_ranges(state.lineage, every)
        return cls(
            state=state,
            states={each.segment_id: each.state for each in every},
            named={
                stored_object.key: each.segment_id
                for each in every
                if each.state is not _DELETED
                for stored_object in each.objects
            },
            stored_starts=[each.offsets.start_offset for each in stored],
            stored_ends=list(accumulate((each.offsets.end_offset for each in stored), max)),
        )

    def holds(self, offset: int) -> bool:
        """Whether a finished segment of the log's lineage begins at or before, and reaches on."""
        before = bisect_right(self.stored_starts, offset)
        return before > 0 and self.stored_ends[before - 1] > offset


def why_not_dead(object_key: str, name: ObjectKey | LedgerKey, known: PartitionKnowledge) -> str:
    """Why an object may not be removed; empty if it may. `name` is what its key says."""
    segment_state = known.states.get(name.segment_id)
    if segment_state is not None and segment_state is not _DELETED:
        return f"the metadata has its segment in {segment_state.name}"
    if object_key in known.named:
        return f"the metadata names it as an object of {known.named[object_key]}"
    state = known.state
    if segment_state is _DELETED or state.deletion is not None:
        return ""  # all of the segment, or of the partition, goes
    if state.owner is None:
        return "the metadata knows nothing of its partition, which may be another cluster's"
    if name.base_offset < (state.log_start_offset or 0) or known.holds(name.base_offset):
        return ""
    return f"nothing else is stored of offset {name.base_offset}: it may be the only copy"
