"""Decides on dead letters about orphans from the metadata, read to its end.

Checks a dead letter against the current metadata. The object must be old, and removable according
to orphan_proof.py. The audit must have seen it twice, and recently. The metadata must be readable
completely, come from the same topic, and be read at least as far as the audit read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter
from rlmm.partitioner import metadata_partition
from rsm.layout.keys import ObjectKeys, SegmentKey
from rsm.segment.ids import TopicIdPartition
from spark_tools.orphan_proof import why_not_removable
from spark_tools.quarantine import parse_either
from spark_tools.repair.proof import Decision, MetadataSource, RepairAction
from spark_tools.snapshot import MetadataSnapshot

SIGHTING_MAX_AGE_MS = 7 * 86_400_000
"""The maximum age of an audit.

Only the audit checks that other, intact objects contain an orphan's offsets.
"""

_REMEMBERED_PARTITIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanTerms:
    """Represents the format of object names, and two limits as wall-clock times.

    An object must have been modified before `cut_off_ms`, and the audit must have seen it at
    `seen_since_ms` or later.
    """

    keys: ObjectKeys
    cut_off_ms: int
    seen_since_ms: int

    def partition_of(self, dead_letter: OrphanDeadLetter) -> TopicIdPartition | None:
        """Return the partition in the object's name; None if the name is not one of `rlm`'s."""
        name = parse_either(self.keys, dead_letter.object_key)
        return None if name is None else name.segment_id.topic_id_partition


class OrphanDecider:
    """Decides on one batch. Caches recent partitions. Not thread-safe."""

    def __init__(
        self, metadata: MetadataSnapshot, source: MetadataSource, terms: OrphanTerms
    ) -> None:
        self._metadata = metadata
        self._source = source
        self._terms = terms
        self._unread = metadata.unread_records()
        self._knowledge = lru_cache(_REMEMBERED_PARTITIONS)(metadata.knowledge)

    def decide(self, dead_letter: OrphanDeadLetter) -> Decision:
        """Return DELETE_OBJECTS or REFUSE; WAIT if an upgrade or time may remove the reason."""
        name = parse_either(self._terms.keys, dead_letter.object_key)
        if name is None:
            return Decision(
                action=RepairAction.REFUSE, reason="rlm does not write objects with this name"
            )
        if reason := self._not_yet(dead_letter):
            return Decision(action=RepairAction.WAIT, reason=reason)
        reason = self._unproved(dead_letter, name) or why_not_removable(
            dead_letter.object_key, name, self._knowledge(name.segment_id.topic_id_partition)
        )
        if reason:
            return Decision(action=RepairAction.REFUSE, reason=reason)
        return Decision(action=RepairAction.DELETE_OBJECTS)

    def _not_yet(self, dead_letter: OrphanDeadLetter) -> str:
        if self._unread:
            return f"the metadata cannot be read completely: {dict(self._unread)}"
        if dead_letter.last_modified_ms >= self._terms.cut_off_ms:
            return "the object is younger than remote.orphan.grace.ms"
        return ""

    def _unproved(self, dead_letter: OrphanDeadLetter, name: SegmentKey) -> str:
        if not 0 < dead_letter.first_seen_ms < dead_letter.last_seen_ms:
            return "the audit did not see the object twice"
        if dead_letter.last_seen_ms < self._terms.seen_since_ms:
            return "the audit saw the object too long ago: audit again"
        return self._source_differs(dead_letter, name.segment_id.topic_id_partition)

    def _source_differs(self, dead_letter: OrphanDeadLetter, partition: TopicIdPartition) -> str:
        identity, read_to = self._metadata.identity, dead_letter.read_to
        if (
            not dead_letter.metadata_topic_id
            or dead_letter.metadata_topic_id != self._source.topic_id
        ):
            return "the dead letter was written for another metadata topic"
        if read_to.partition != metadata_partition(partition, identity.partition_count):
            return "the dead letter was written for another metadata partition"
        if self._source.positions.get(read_to.partition, 0) < read_to.offset:
            return "the metadata ends before the position of the dead letter"
        return ""
