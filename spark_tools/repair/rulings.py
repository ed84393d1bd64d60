"""What the driver decides of a batch's letters, in a form that is little to send. Pure.

Of nearly all letters the driver reads the key alone, which names the segment, and executors are
told what state the metadata has it in; who reads the letter itself judges it by that. Letters about
orphans are judged where the metadata is, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.partition_state import ReadLease
from rlmm.record_keys import PARTITION_SUBJECT_BYTES, segment_subject
from rsm.layout.keys import ObjectKeys
from rsm.segment.metadata import SegmentState
from spark_tools.repair.dead_letters import AnyDeadLetter, why_not_its_own
from spark_tools.repair.proof import Decision, Judgement, MetadataSource, judge

DeadLetterLocation = tuple[int, int]
"""Partition and offset of a letter in its topic."""

_NOT_JUDGED = Judgement(decision=Decision.REFUSE, reason="not judged: its key is not its own")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rulings:
    """One batch's, as of one position of the metadata.

    `states`: by its subject each segment that letters are about, None if it is unknown. `newer`: by
    their subjects the partitions of which a record needs newer rules, with the version of these.
    `leases`: by their subjects the partitions that somebody reads. `listed`: by its subject what
    the metadata names of a segment that is not named by `keys`, of few or none. `objects_count`: by
    its subject how many objects the metadata names of a segment that is being deleted or was.
    `judged`: letters about orphans, and all that have no say. `keys`: how objects are named.
    """

    keys: ObjectKeys
    source: MetadataSource
    states: Mapping[bytes, SegmentState | None]
    newer: Mapping[bytes, int]
    leases: Mapping[bytes, tuple[ReadLease, ...]]
    listed: Mapping[bytes, frozenset[str]]
    objects_count: Mapping[bytes, int]
    judged: Mapping[DeadLetterLocation, Judgement]

    def judgement(self, location: DeadLetterLocation, dead_letter: AnyDeadLetter) -> Judgement:
        """What is to be done with a letter; REFUSE for one that the driver has not seen."""
        judged = self.judged.get(location)
        if judged is not None:
            return judged
        if not isinstance(dead_letter, DeadLetter):
            return _NOT_JUDGED
        subject = segment_subject(dead_letter.metadata.segment_id)
        if subject not in self.states:
            return _NOT_JUDGED
        newer = self.newer.get(subject[:PARTITION_SUBJECT_BYTES])
        if newer is not None:
            reason = f"a record of the metadata needs version {newer} of the rules"
            return Judgement(decision=Decision.WAIT, reason=reason)
        judgement = judge(
            self.states[subject],
            partition=dead_letter.metadata.topic_id_partition,
            delete_started=dead_letter.delete_started,
            metadata_topic_id=dead_letter.metadata_topic_id,
            source=self.source,
        )
        if judgement.decision not in (Decision.DELETE, Decision.SWEEP):
            return judgement
        # That a segment is being deleted proves nothing of what is another's.
        reason = why_not_its_own(dead_letter, self.keys, self.listed.get(subject, ()))
        reason = reason or self._why_not_all(dead_letter, subject)
        if reason:
            return Judgement(decision=Decision.REFUSE, reason=reason)
        lease = self._lease_on(dead_letter, subject)
        if judgement.decision is Decision.DELETE and lease is not None:
            return Judgement(decision=Decision.WAIT, reason=f"it is read by {lease.holder}")
        return judgement

    def _why_not_all(self, dead_letter: DeadLetter, subject: bytes) -> str:
        """Why a segment would not be gone without the objects that a letter names, or empty."""
        named_count = len(set(dead_letter.object_keys))
        count = self.objects_count.get(subject, 1)  # there is no segment without objects
        if named_count >= count:
            return ""
        return f"the letter names {named_count} objects, the segment has {count} or more"

    def _lease_on(self, dead_letter: DeadLetter, subject: bytes) -> ReadLease | None:
        leased = self.leases.get(subject[:PARTITION_SUBJECT_BYTES], ())
        offsets = dead_letter.metadata.offsets
        return next((lease for lease in leased if lease.offsets.overlaps(offsets)), None)
