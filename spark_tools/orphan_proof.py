"""Decides from the metadata whether an object that no record names may be removed. Pure.

The absence of a record about the object's segment is not sufficient proof. The metadata topic may
be the wrong one or a recreated one, or another cluster may use the same store. So the deletion of
the segment or of its partition must be recorded. Otherwise, the partition must have an owner, and
the object's records must also be stored in other objects. A base offset below the log start offset
proves nothing. In a recreated metadata topic, the log start offset is where the broker's log began
at that time. Records below it may be stored nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState
from rsm.layout.keys import SegmentKey, StreamedKey
from rsm.segment.coverage import StoredRange, stored_ranges
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange

_DELETED = SegmentState.DELETE_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionKnowledge:
    """Represents the metadata of a partition, indexed for lookups.

    `named` maps an object's key to its segment, unless the segment is deleted. `whole` is the
    newest range that is stored without a hole. An unknown object that begins in this range is
    redundant. Its end offset is not known, but all records above the range are in the broker's log.
    """

    state: PartitionState
    states: Mapping[RemoteLogSegmentId, SegmentState]
    named: Mapping[str, RemoteLogSegmentId]
    whole: OffsetRange

    @classmethod
    def of(cls, state: PartitionState, segments: Iterable[SegmentRecord]) -> PartitionKnowledge:
        """Index the segments, which may be in any state."""
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
            whole=_newest_whole(stored),
        )


def why_not_removable(object_key: str, name: SegmentKey, known: PartitionKnowledge) -> str:
    """Return why an object must not be removed; empty if it may. `name` is its parsed key."""
    segment_state = known.states.get(name.segment_id)
    if segment_state is not None and segment_state is not _DELETED:
        return f"the metadata has its segment in the state {segment_state.name}"
    if object_key in known.named:
        return f"the metadata names it as an object of {known.named[object_key]}"
    state = known.state
    if segment_state is _DELETED or state.deletion is not None:
        return ""  # The whole segment, or the whole partition, is deleted.
    if state.owner is None:
        return "the metadata does not know its partition, which may be another cluster's"
    if isinstance(name, StreamedKey):
        return "its name has no offset: it may be the only copy"
    if name.base_offset in known.whole:
        return ""
    return f"not all offsets at or above {name.base_offset} are stored: it may be the only copy"


def _newest_whole(stored: Sequence[StoredRange]) -> OffsetRange:
    """Return the last contiguous range of `stored`, which ascends."""
    start_offset = end_offset = 0
    for each in stored:
        if each.offsets.start_offset > end_offset:
            start_offset = each.offsets.start_offset
        end_offset = max(end_offset, each.offsets.end_offset)
    return OffsetRange(start_offset=start_offset, end_offset=end_offset)
