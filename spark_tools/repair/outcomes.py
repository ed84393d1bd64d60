"""What becomes of a letter: the name of its outcome, and the record that tells of it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from rlmm.dead_letters.dead_letter import DeadLetter, end_of_deletion
from rlmm.partitioner import metadata_partition
from spark_tools.record_writer import OutgoingRecord
from spark_tools.repair.dead_letters import (
    DEAD_LETTER_MAX_BYTES,
    AnyDeadLetter,
    UnreadableDeadLetter,
    repair_attempts,
    tried_again,
    write_dead_letter,
)
from spark_tools.repair.orphan_removal import Removal
from spark_tools.repair.proof import Decision, Judgement
from spark_tools.repair.rulings import DeadLetterLocation

_REASON_MAX_CHARS = 1_000

WAITING = "waiting"
"""The outcome of letters that nothing became of yet."""
FAILED = "failed"
_REPAIRED = "repaired"
_REFUSED = "refused"
_SUPERSEDED = "superseded"
_UNREADABLE = "unreadable"

_OF_DECISION = {
    Decision.DELETE: _REPAIRED,
    Decision.SWEEP: _REPAIRED,
    Decision.REFUSE: _REFUSED,
    Decision.WAIT: WAITING,
    Decision.SUPERSEDED: _SUPERSEDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTopics:
    """Where records about outcomes go, and after how many attempts of repair a letter is parked."""

    metadata_topic: str
    metadata_partition_count: int
    dead_letter_topic: str
    parking_topic: str
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedDeadLetter:
    """A record of the letter topic, and what it says."""

    location: DeadLetterLocation
    key: bytes | None
    value: bytes
    dead_letter: AnyDeadLetter | UnreadableDeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Its name, the letter (None: it cannot be read), why, and a record if any."""

    name: str
    dead_letter: AnyDeadLetter | None
    reason: str = ""
    record: OutgoingRecord | None = None


def unreadable(
    received: ReceivedDeadLetter, problem: UnreadableDeadLetter, topics: OutcomeTopics
) -> Outcome:
    """Parked as it is, unless a newer version can read it: that finds it where it was."""
    if problem.is_newer:
        return _waiting(received, problem.reason, topics)
    return _parked(received, _UNREADABLE, problem.reason, topics)


def expected_outcome(
    dead_letter: AnyDeadLetter | UnreadableDeadLetter, judge: Callable[[AnyDeadLetter], Judgement]
) -> str:
    """The name of the outcome if the store does as it is told."""
    if isinstance(dead_letter, UnreadableDeadLetter):
        return WAITING if dead_letter.is_newer else _UNREADABLE
    return _OF_DECISION[judge(dead_letter).decision]


def outcome_of(
    received: ReceivedDeadLetter,
    dead_letter: AnyDeadLetter,
    judgement: Judgement,
    removal: Removal | None,
    topics: OutcomeTopics,
    now_ms: int,
) -> Outcome:
    """`removal` is what became of the objects, None if they were to stay."""
    if judgement.decision is Decision.SUPERSEDED:
        return Outcome(name=_SUPERSEDED, dead_letter=dead_letter)
    if judgement.decision is Decision.WAIT:
        return _waiting(received, judgement.reason, topics)
    if removal is None:
        return _parked(received, _REFUSED, judgement.reason, topics)
    if removal.refusal:
        return _parked(received, _REFUSED, removal.refusal, topics)
    if removal.outage:
        return _waiting(received, removal.outage, topics)
    if removal.failure:
        return _failed(received, dead_letter, removal.failure, topics, now_ms)
    record = None
    if judgement.decision is Decision.DELETE and isinstance(dead_letter, DeadLetter):
        record = _end_of_deletion(dead_letter, received.value, topics, now_ms)
    return Outcome(name=_REPAIRED, dead_letter=dead_letter, record=record)


def _end_of_deletion(
    dead_letter: DeadLetter, value: bytes, topics: OutcomeTopics, now_ms: int
) -> OutgoingRecord:
    encoded = end_of_deletion(dead_letter, value, event_id=uuid4(), event_timestamp_ms=now_ms)
    tip, partition_count = dead_letter.metadata.topic_id_partition, topics.metadata_partition_count
    return OutgoingRecord(
        topic=topics.metadata_topic,
        partition=metadata_partition(tip, partition_count),
        key=encoded.key,
        value=encoded.value,
    )


def _failed(
    received: ReceivedDeadLetter,
    dead_letter: AnyDeadLetter,
    failure: str,
    topics: OutcomeTopics,
    now_ms: int,
) -> Outcome:
    """Back to the letters with one attempt more, or parked after too many."""
    again = tried_again(dead_letter, failure[:_REASON_MAX_CHARS], now_ms)
    if repair_attempts(again) >= topics.max_attempts:
        reason = f"failed {repair_attempts(again)} times: {failure}"
        return _parked(received, "given_up", reason, topics)
    return Outcome(
        name=FAILED, dead_letter=dead_letter, reason=failure, record=_back(again, topics)
    )


def _waiting(received: ReceivedDeadLetter, reason: str, topics: OutcomeTopics) -> Outcome:
    """The record as it was: a newer version may have written more into it than is known here."""
    record = OutgoingRecord(topic=topics.dead_letter_topic, key=received.key, value=received.value)
    return Outcome(name=WAITING, dead_letter=_known(received), reason=reason, record=record)


def _back(dead_letter: AnyDeadLetter, topics: OutcomeTopics) -> OutgoingRecord:
    encoded = write_dead_letter(dead_letter)
    return OutgoingRecord(topic=topics.dead_letter_topic, key=encoded.key, value=encoded.value)


def _parked(received: ReceivedDeadLetter, name: str, reason: str, topics: OutcomeTopics) -> Outcome:
    """The record as it was, with the reason and the place it comes from.

    One that is too large is cut off, and the reason says so: it is whole where it comes from.
    """
    partition, offset = received.location
    location = f"{topics.dead_letter_topic}-{partition}@{offset}"
    key = None if received.key is None else received.key[:DEAD_LETTER_MAX_BYTES]
    value = received.value[: DEAD_LETTER_MAX_BYTES - len(key or b"")]
    text = reason[:_REASON_MAX_CHARS]
    if (key, value) != (received.key, received.value):
        text = f"{text}; cut off here, whole at {location}"
    record = OutgoingRecord(
        topic=topics.parking_topic,
        key=key,
        value=value,
        headers=(("reason", text.encode()), ("from", location.encode())),
    )
    return Outcome(name=name, dead_letter=_known(received), reason=reason, record=record)


def _known(received: ReceivedDeadLetter) -> AnyDeadLetter | None:
    return None if isinstance(received.dead_letter, UnreadableDeadLetter) else received.dead_letter
