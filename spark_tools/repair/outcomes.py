"""What becomes of a letter: the name of its outcome, and the record that tells of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

from rlmm.dead_letter import DeadLetter, end_of_deletion
from rlmm.partitioner import metadata_partition
from spark_tools.record_writer import OutgoingRecord
from spark_tools.repair.letters import Letter, write_letter
from spark_tools.repair.orphan_removal import Removal
from spark_tools.repair.proof import Judgement, Verdict
from spark_tools.repair.rulings import LetterPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTopics:
    """Where records about outcomes go, and after how many attempts a letter is parked."""

    metadata_topic: str
    metadata_partition_count: int
    letter_topic: str
    parking_topic: str
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedLetter:
    """A record of the letter topic. `letter` is why it can't be read, if it can't be."""

    place: LetterPlace
    key: bytes | None
    value: bytes
    letter: Letter | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Its name, the letter (None: it can't be read), why, and a record if any."""

    name: str
    letter: Letter | None
    reason: str = ""
    record: OutgoingRecord | None = None


def unreadable(received: ReceivedLetter, problem: str, topics: OutcomeTopics) -> Outcome:
    """Parked as it is."""
    return _parked(received, "unreadable", problem, topics)


def outcome_of(
    received: ReceivedLetter,
    letter: Letter,
    judgement: Judgement,
    removal: Removal | None,
    topics: OutcomeTopics,
    now_ms: int,
) -> Outcome:
    """`removal` is what became of the objects, None if they were to stay."""
    if judgement.verdict is Verdict.SUPERSEDED:
        return Outcome(name="superseded", letter=letter)
    if judgement.verdict is Verdict.WAIT:
        again = _back(letter, topics)
        return Outcome(name="waiting", letter=letter, reason=judgement.reason, record=again)
    if removal is None:
        return _parked(received, "refused", judgement.reason, topics)
    if removal.refusal:
        return _parked(received, "refused", removal.refusal, topics)
    if removal.failure:
        return _failed(received, letter, removal.failure, topics, now_ms)
    record = None
    if judgement.verdict is Verdict.DELETE and isinstance(letter, DeadLetter):
        record = _end_of_deletion(letter, received.value, topics, now_ms)
    return Outcome(name="repaired", letter=letter, record=record)


def _end_of_deletion(
    letter: DeadLetter, value: bytes, topics: OutcomeTopics, now_ms: int
) -> OutgoingRecord:
    encoded = end_of_deletion(letter, value, event_id=uuid4(), event_timestamp_ms=now_ms)
    tip, partition_count = letter.metadata.topic_id_partition, topics.metadata_partition_count
    return OutgoingRecord(
        topic=topics.metadata_topic,
        partition=metadata_partition(tip, partition_count),
        key=encoded.key,
        value=encoded.value,
    )


def _failed(
    received: ReceivedLetter, letter: Letter, failure: str, topics: OutcomeTopics, now_ms: int
) -> Outcome:
    """Back to the letters with one attempt more, or parked after too many."""
    again = replace(letter, attempts=letter.attempts + 1, reason=failure, last_attempt_ms=now_ms)
    if again.attempts >= topics.max_attempts:
        reason = f"failed {again.attempts} times: {failure}"
        return _parked(received, "given_up", reason, topics)
    return Outcome(name="failed", letter=letter, reason=failure, record=_back(again, topics))


def _back(letter: Letter, topics: OutcomeTopics) -> OutgoingRecord:
    encoded = write_letter(letter)
    return OutgoingRecord(topic=topics.letter_topic, key=encoded.key, value=encoded.value)


def _parked(received: ReceivedLetter, name: str, reason: str, topics: OutcomeTopics) -> Outcome:
    """The record as it was, with the reason and the place it comes from."""
    partition, offset = received.place
    place = f"{topics.letter_topic}-{partition}@{offset}"
    record = OutgoingRecord(
        topic=topics.parking_topic,
        key=received.key,
        value=received.value,
        headers=(("reason", reason.encode()), ("from", place.encode())),
    )
    letter = None if isinstance(received.letter, str) else received.letter
    return Outcome(name=name, letter=letter, reason=reason, record=record)
