"""Represents the driver's decisions on a batch in a small form to send to executors. Pure.

For nearly all dead letters, the driver reads only the key, which names the segment. It sends the
segment's state in the metadata, and the executor decides from this state. The driver itself decides
on dead letters about orphans, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.record_keys import PARTITION_SUBJECT_BYTES, segment_subject
from rlmm.state.partition_state import ReadLease
from rsm.layout.keys import ObjectKeys
from rsm.segment.metadata import SegmentState
from spark_tools.repair.dead_letters import AnyDeadLetter, foreign_object_reason
from spark_tools.repair.proof import Decision, MetadataSource, RepairAction, decide

DeadLetterLocation = tuple[int, int]
"""The partition and offset of a dead letter in its topic."""

_UNDECIDED = Decision(
    action=RepairAction.REFUSE,
    reason="not decided: the record's key is not the key of its dead letter",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDecisions:
    """Represents the decisions on one batch, as of one position of the metadata. Immutable.

    Keys of `states`, `listed` and `objects_count` are the segments' subjects. A state is None if
    the segment is unknown. `listed` contains the object names of a deleted segment that do not
    contain the segment's id; few segments have any. `objects_count` is the number of objects of a
    deleted segment.

    Keys of `newer` and `leases` are the partitions' subjects. `newer` is the fold version that a
    record needs.

    `decided` contains the decisions on dead letters about orphans and on superseded ones.
    """

    keys: ObjectKeys
    source: MetadataSource
    states: Mapping[bytes, SegmentState | None]
    newer: Mapping[bytes, int]
    leases: Mapping[bytes, tuple[ReadLease, ...]]
    listed: Mapping[bytes, frozenset[str]]
    objects_count: Mapping[bytes, int]
    decided: Mapping[DeadLetterLocation, Decision]

    def decision(self, location: DeadLetterLocation, dead_letter: AnyDeadLetter) -> Decision:
        """Return the decision on a dead letter; REFUSE if the driver has not seen its subject."""
        decided = self.decided.get(location)
        if decided is not None:
            return decided
        if not isinstance(dead_letter, DeadLetter):
            return _UNDECIDED
        subject = segment_subject(dead_letter.metadata.segment_id)
        if subject not in self.states:
            return _UNDECIDED
        newer = self.newer.get(subject[:PARTITION_SUBJECT_BYTES])
        if newer is not None:
            reason = f"a metadata record needs version {newer} of the fold"
            return Decision(action=RepairAction.WAIT, reason=reason)
        decision = decide(
            self.states[subject],
            partition=dead_letter.metadata.topic_id_partition,
            delete_started=dead_letter.delete_started,
            metadata_topic_id=dead_letter.metadata_topic_id,
            source=self.source,
        )
        if decision.action not in (RepairAction.DELETE, RepairAction.DELETE_OBJECTS):
            return decision
        # The deletion of this segment proves nothing about objects of other segments.
        reason = foreign_object_reason(dead_letter, self.keys, self.listed.get(subject, ()))
        reason = reason or self._why_not_all(dead_letter, subject)
        if reason:
            return Decision(action=RepairAction.REFUSE, reason=reason)
        lease = self._lease_on(dead_letter, subject)
        if decision.action is RepairAction.DELETE and lease is not None:
            reason = f"{lease.holder} has a read lease on the segment"
            return Decision(action=RepairAction.WAIT, reason=reason)
        return decision

    def _why_not_all(self, dead_letter: DeadLetter, subject: bytes) -> str:
        """Return the reason if the dead letter lacks objects of its segment; otherwise empty."""
        named_count = len(set(dead_letter.object_keys))
        count = self.objects_count.get(subject, 1)  # Every segment has at least one object.
        if named_count >= count:
            return ""
        return (
            "the dead letter does not name all objects of its segment "
            f"(named={named_count}, expected={count} or more)"
        )

    def _lease_on(self, dead_letter: DeadLetter, subject: bytes) -> ReadLease | None:
        leased = self.leases.get(subject[:PARTITION_SUBJECT_BYTES], ())
        offsets = dead_letter.metadata.offsets
        return next((lease for lease in leased if lease.offsets.overlaps(offsets)), None)
