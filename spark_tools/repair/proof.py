"""Decides whether a dead letter's objects may be deleted: only the metadata is proof. Pure.

A dead letter may be old, replayed or forged. Its objects may be deleted if the metadata records the
segment's deletion as started or finished. If the metadata has no record of the segment, it must be
readable completely, come from the topic that the dead letter names, and be read beyond the
position of DELETE_SEGMENT_STARTED.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState


class RepairAction(Enum):
    """Represents what to do with a dead letter."""

    DELETE = "delete"
    """Delete the objects and publish the end of the deletion."""
    DELETE_OBJECTS = "delete_objects"
    """Delete the objects; the metadata needs no record."""
    REFUSE = "refuse"
    """Delete nothing; park the dead letter."""
    WAIT = "wait"
    """Delete nothing yet; write the unchanged dead letter back, because the reason is temporary."""
    SUPERSEDED = "superseded"
    """Do nothing: the batch has a later dead letter about the same segment or orphan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Represents a decision on a dead letter; `reason` is empty except for REFUSE and WAIT."""

    action: RepairAction
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSource:
    """Represents the metadata topic that was read, and how far.

    `positions` has the next offset of each partition. `unread` counts unreadable records, by
    reason.
    """

    topic_id: str
    partition_count: int
    positions: Mapping[int, int]
    unread: Mapping[str, int]

    def has_record_at(self, position: MetadataPosition) -> bool:
        """Return whether the metadata was read beyond a position."""
        return self.positions.get(position.partition, 0) > position.offset


def decide(
    state: SegmentState | None,
    *,
    partition: TopicIdPartition,
    delete_started: MetadataPosition | None,
    metadata_topic_id: str,
    source: MetadataSource,
) -> Decision:
    """Decide from `state`, the segment's state in the metadata; it is None for an unknown segment.

    `partition` is the segment's. From the dead letter come `delete_started`, the position of the
    deletion's first record, and `metadata_topic_id`, the id of the topic that contains it.
    """
    match state:
        case SegmentState.DELETE_SEGMENT_STARTED:
            return Decision(action=RepairAction.DELETE)
        case SegmentState.DELETE_SEGMENT_FINISHED:
            return Decision(action=RepairAction.DELETE_OBJECTS)
        case None:
            return _decide_on_unknown(partition, delete_started, metadata_topic_id, source)
        case _:
            reason = f"the segment's state is {state.name}"
            return Decision(action=RepairAction.REFUSE, reason=reason)


def _decide_on_unknown(
    partition: TopicIdPartition,
    delete_started: MetadataPosition | None,
    metadata_topic_id: str,
    source: MetadataSource,
) -> Decision:
    if source.unread:  # A newer version may be able to read these records.
        reason = (
            f"the segment is unknown, and the metadata cannot be read completely: {source.unread}"
        )
        return Decision(action=RepairAction.WAIT, reason=reason)
    if delete_started is None or not metadata_topic_id:
        reason = "the segment is unknown, and the dead letter does not name its deletion's position"
    elif metadata_topic_id != source.topic_id:
        reason = (
            "the segment is unknown, and the dead letter was written for another metadata topic"
        )
    elif delete_started.partition != metadata_partition(partition, source.partition_count):
        reason = "the segment is unknown, and its deletion cannot be at the dead letter's position"
    elif not source.has_record_at(delete_started):
        reason = "the segment is unknown, and the metadata ends before its deletion"
    else:
        return Decision(action=RepairAction.DELETE_OBJECTS)
    return Decision(action=RepairAction.REFUSE, reason=reason)
