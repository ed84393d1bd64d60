"""Whether what a dead letter names may be deleted: by the metadata, never by the letter. Pure.

A letter may be old, replayed or forged. Its objects go only if the metadata itself says that the
segment is being deleted or was; or if the metadata does not know the segment any more, and that is
proof: read whole, from the topic that the letter speaks of, to behind its DELETE_SEGMENT_STARTED.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from rlmm.partitioner import metadata_partition
from rlmm.spi import MetadataPosition
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState


class Decision(Enum):
    """What is to be done with a letter."""

    DELETE = "delete"
    """The objects go, and the end of the deletion is published."""
    SWEEP = "sweep"
    """The objects go; the metadata needs no word of it."""
    REFUSE = "refuse"
    """Nothing is deleted; the letter is parked."""
    WAIT = "wait"
    """Nothing is deleted yet; what hinders it passes, so the letter goes back as it is."""
    SUPERSEDED = "superseded"
    """A later letter of the same segment is at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict and why."""

    decision: Decision
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSource:
    """What was read of the metadata: which topic, and the next offset of each of its partitions.

    `partition_count`: how many it has. `unread`: how many records say what is not known here, by
    reason.
    """

    topic_id: str
    partition_count: int
    positions: Mapping[int, int]
    unread: Mapping[str, int]

    def holds(self, position: MetadataPosition) -> bool:
        """Whether the record at a position has been applied."""
        return self.positions.get(position.partition, 0) > position.offset


def judge(
    state: SegmentState | None,
    *,
    partition: TopicIdPartition,
    delete_started: MetadataPosition | None,
    metadata_topic_id: str,
    source: MetadataSource,
) -> Judgement:
    """By the state that the metadata has the segment in, None if it knows none.

    `partition` is the segment's; `delete_started` and `metadata_topic_id` are the letter's: where
    its deletion's start stands.
    """
    match state:
        case SegmentState.DELETE_SEGMENT_STARTED:
            return Judgement(decision=Decision.DELETE)
        case SegmentState.DELETE_SEGMENT_FINISHED:
            return Judgement(decision=Decision.SWEEP)
        case None:
            return _judge_unknown(partition, delete_started, metadata_topic_id, source)
        case _:
            return Judgement(decision=Decision.REFUSE, reason=f"the segment is in {state.name}")


def _judge_unknown(
    partition: TopicIdPartition,
    delete_started: MetadataPosition | None,
    metadata_topic_id: str,
    source: MetadataSource,
) -> Judgement:
    if source.unread:  # a newer version may read it
        reason = f"the segment is unknown, and the metadata cannot be read whole: {source.unread}"
        return Judgement(decision=Decision.WAIT, reason=reason)
    if delete_started is None or not metadata_topic_id:
        reason = "the segment is unknown, and the letter does not say where its deletion stands"
    elif metadata_topic_id != source.topic_id:
        reason = "the segment is unknown, and the metadata topic is another than the letter's"
    elif delete_started.partition != metadata_partition(partition, source.partition_count):
        reason = "the segment is unknown, and its deletion cannot stand where the letter says"
    elif not source.holds(delete_started):
        reason = "the segment is unknown, and the metadata ends before its deletion"
    else:
        return Judgement(decision=Decision.SWEEP)
    return Judgement(decision=Decision.REFUSE, reason=reason)
