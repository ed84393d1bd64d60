"""What becomes of a letter: the name of its outcome, and the record that tells of it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from rlmm.dead_letters.dead_letter import DeadLetter, end_of_deletion
from rlmm.partitioner import metadata_partition
from spark_tools.record_writer import OutgoingRecord
from spark_tools.repair.letters import (
    LETTER_MAX_BYTES,
    Letter,
    Unread,
    repair_attempts,
    tried_again,
    write_letter,
)
from spark_tools.repair.orphan_removal import Removal
from spark_tools.repair.proof import Judgement, Verdict
from spark_tools.repair.rulings import LetterPlace

_REASON_MAX_CHARS = 1_000

WAITING = "waiting"
"""The outcome of letters that nothing became of yet."""
FAILED = "failed"
_REPAIRED = "repaired"
_REFUSED = "refused"
_SUPERSEDED = "superseded"
_UNREADABLE = "unreadable"

_OF_VERDICT = {
    Verdict.DELETE: _REPAIRED,
    Verdict.SWEEP: _REPAIRED,
    Verdict.REFUSE: _REFUSED,
    Verdict.WAIT: WAITING,
    Verdict.SUPERSEDED: _SUPERSEDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTopics:
    """Where records about outcomes go, and after how many attempts of repair a letter is parked."""

    metadata_topic: str
    metadata_partition_count: int
    letter_topic: str
    parking_topic: str
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedLetter:
    """A record of the letter topic, and what it says."""

    place: LetterPlace
    key: bytes | None
    value: bytes
    letter: Letter | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Its name, the letter (None: it can't be read), why, and a record if any."""

    name: str
    letter: Letter | None
    reason: str = ""
    record: OutgoingRecord | None = None


def unreadable(received: ReceivedLetter, problem: Unread, topics: OutcomeTopics) -> Outcome:
    """Parked as it is, unless a newer version can read it: that finds it where it was."""
    if problem.is_newer:
        return _waiting(received, problem.reason, topics)
    return _parked(received, _UNREADABLE, problem.reason, topics)


def expected_outcome(letter: Letter | Unread, judge: Callable[[Letter], Judgement]) -> str:
    """The name of the outcome if the store does as it is told."""
    if isinstance(letter, Unread):
        return WAITING if letter.is_newer else _UNREADABLE
    return _OF_VERDICT[judge(letter).verdict]


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
        return Outcome(name=_SUPERSEDED, letter=letter)
    if judgement.verdict is Verdict.WAIT:
        return _waiting(received, judgement.reason, topics)
    if removal is None:
        return _parked(received, _REFUSED, judgement.reason, topics)
    if removal.refusal:
        return _parked(received, _REFUSED, removal.refusal, topics)
    if removal.outage:
        return _waiting(received, removal.outage, topics)
    if removal.failure:
        return _failed(received, letter, removal.failure, topics, now_ms)
    record = None
    if judgement.verdict is Verdict.DELETE and isinstance(letter, DeadLetter):
        record = _end_of_deletion(letter, received.value, topics, now_ms)
    return Outcome(name=_REPAIRED, letter=letter, record=record)


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
    again = tried_again(letter, failure[:_REASON_MAX_CHARS], now_ms)
    if repair_attempts(again) >= topics.max_attempts:
        reason = f"failed {repair_attempts(again)} times: {failure}"
        return _parked(received, "given_up", reason, topics)
    return Outcome(name=FAILED, letter=letter, reason=failure, record=_back(again, topics))


def _waiting(received: ReceivedLetter, reason: str, topics: OutcomeTopics) -> Outcome:
    """The record as it was: a newer version may have written more into it than is known here."""
    record = OutgoingRecord(topic=topics.letter_topic, key=received.key, value=received.value)
    return Outcome(name=WAITING, letter=_known(received), reason=reason, record=record)


def _back(letter: Letter, topics: OutcomeTopics) -> OutgoingRecord:
    encoded = write_letter(letter)
    return OutgoingRecord(topic=topics.letter_topic, key=encoded.key, value=encoded.value)


def _parked(received: ReceivedLetter, name: str, reason: str, topics: OutcomeTopics) -> Outcome:
    """The record as it was, with the reason and the place it comes from.

    One that is too large is cut off, and the reason says so: it is whole where it comes from.
    """
    partition, offset = received.place
    place = f"{topics.letter_topic}-{partition}@{offset}"
    key = None if received.key is None else received.key[:LETTER_MAX_BYTES]
    value = received.value[: LETTER_MAX_BYTES - len(key or b"")]
    told = reason[:_REASON_MAX_CHARS]
    if (key, value) != (received.key, received.value):
        told = f"{told}; cut off here, whole at {place}"
    record = OutgoingRecord(
        topic=topics.parking_topic,
        key=key,
        value=value,
        headers=(("reason", told.encode()), ("from", place.encode())),
    )
    return Outcome(name=name, letter=_known(received), reason=reason, record=record)


def _known(received: ReceivedLetter) -> Letter | None:
    return None if isinstance(received.letter, Unread) else received.letter
