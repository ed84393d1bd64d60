"""Judges the letters of a batch by the metadata, read to its end first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlmm.dead_letter import DeadLetter
from spark_tools.repair.letter_rows import LetterPlace
from spark_tools.repair.proof import Judgement, MetadataSource, Verdict, judge
from spark_tools.snapshot import MetadataSnapshot

_SUPERSEDED = Judgement(verdict=Verdict.SUPERSEDED)


def judge_letters(
    letters: Mapping[LetterPlace, DeadLetter], metadata: MetadataSnapshot
) -> dict[LetterPlace, Judgement]:
    """A judgement of each. RetriableError if the metadata can't be read to its end in time."""
    metadata.catch_up({letter.metadata.topic_id_partition for letter in letters.values()})
    source = MetadataSource(topic_id=metadata.identity.topic_id, positions=metadata.positions())
    latest = _latest(letters)
    return {
        place: _judged(letter, metadata, source) if place in latest else _SUPERSEDED
        for place, letter in letters.items()
    }


def _latest(letters: Mapping[LetterPlace, DeadLetter]) -> frozenset[LetterPlace]:
    """Of each segment's letters the one of the most attempts: deleted once, and back once."""
    found: dict[object, tuple[int, LetterPlace]] = {}
    for place, letter in letters.items():
        segment_id = letter.metadata.segment_id.id
        found[segment_id] = max(found.get(segment_id, (-1, place)), (letter.attempts, place))
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


def counted(outcomes: Sequence[str]) -> dict[str, int]:
    """How many there are of each."""
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
