"""Judges the letters of a batch by the metadata, read to its end first."""

from __future__ import annotations

from collections.abc import Mapping

from rlmm.dead_letter import DeadLetter
from rlmm.orphan_letter import OrphanLetter
from rsm.segment.ids import TopicIdPartition
from spark_tools.repair.letter_rows import LetterPlace
from spark_tools.repair.letters import Letter, subject_of
from spark_tools.repair.orphan_judging import OrphanJudge, OrphanTerms
from spark_tools.repair.proof import Judgement, MetadataSource, Verdict, judge
from spark_tools.snapshot import MetadataSnapshot

_SUPERSEDED = Judgement(verdict=Verdict.SUPERSEDED)


def judge_letters(
    letters: Mapping[LetterPlace, Letter], metadata: MetadataSnapshot, orphans: OrphanTerms
) -> dict[LetterPlace, Judgement]:
    """A judgement of each. RetriableError if the metadata can't be read to its end in time."""
    partitions = (_partition(letter, orphans) for letter in letters.values())
    metadata.catch_up({partition for partition in partitions if partition is not None})
    source = MetadataSource(topic_id=metadata.identity.topic_id, positions=metadata.positions())
    judge_orphan = OrphanJudge(metadata, source, orphans).judge
    latest = _latest(letters)
    judgements: dict[LetterPlace, Judgement] = {}
    for place, letter in letters.items():
        if place not in latest:
            judgements[place] = _SUPERSEDED
        elif isinstance(letter, OrphanLetter):
            judgements[place] = judge_orphan(letter)
        else:
            judgements[place] = _judged(letter, metadata, source)
    # One object for all that are alike: executors are sent them by the ten thousand.
    alike: dict[Judgement, Judgement] = {}
    return {place: alike.setdefault(each, each) for place, each in judgements.items()}


def _partition(letter: Letter, orphans: OrphanTerms) -> TopicIdPartition | None:
    if isinstance(letter, OrphanLetter):
        return orphans.partition_of(letter)
    return letter.metadata.topic_id_partition


def _latest(letters: Mapping[LetterPlace, Letter]) -> frozenset[LetterPlace]:
    """Of each subject's letters one: it is deleted once, and goes back once.

    A segment's is that of the most attempts; an orphan's the last, which tells of it as it is.
    """
    found: dict[str, tuple[int, LetterPlace]] = {}
    for place, letter in letters.items():
        subject = subject_of(letter)
        rank = 0 if isinstance(letter, OrphanLetter) else letter.attempts
        found[subject] = max(found.get(subject, (-1, place)), (rank, place))
    return frozenset(place for _, place in found.values())


def _judged(letter: DeadLetter, metadata: MetadataSnapshot, source: MetadataSource) -> Judgement:
    newer = metadata.newer_record(letter.metadata.topic_id_partition)
    if newer is not None:
        reason = f"a record of the metadata needs version {newer.needs_fold_version} of the rules"
        return Judgement(verdict=Verdict.REFUSE, reason=reason)
    return judge(
        metadata.segment_state(letter.metadata.segment_id),
        delete_started=letter.delete_started,
        metadata_topic_id=letter.metadata_topic_id,
        source=source,
    )
