"""Maps a dead letter's decision and removal to its outcome and its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from uuid import uuid4

from rlmm.dead_letters.dead_letter import DeadLetter, end_of_deletion
from rlmm.partitioner import metadata_partition
from spark_tools.record_writer import OutgoingRecord
from spark_tools.repair.batch_decisions import DeadLetterLocation
from spark_tools.repair.dead_letters import (
    DEAD_LETTER_MAX_BYTES,
    AnyDeadLetter,
    UnreadableDeadLetter,
    repair_attempts,
    with_failed_attempt,
    write_dead_letter,
)
from spark_tools.repair.proof import Decision, RepairAction
from spark_tools.repair.removal import Removal

_REASON_MAX_CHARS = 1_000


class RepairOutcome(StrEnum):
    """Represents what happened to a dead letter; the value is the name in reports."""

    REPAIRED = "repaired"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    WAITING = "waiting"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    SUPERSEDED = "superseded"


OUTCOME_MEANINGS: Mapping[RepairOutcome, str] = MappingProxyType(
    {
        RepairOutcome.REPAIRED: "Dead letters whose objects are deleted or in quarantine. If the "
        "metadata recorded only the start of the deletion, the job wrote DELETE_SEGMENT_FINISHED.",
        RepairOutcome.FAILED: "Dead letters whose objects the job could not delete. It wrote them "
        "back to the dead-letter topic with one more attempt.",
        RepairOutcome.GIVEN_UP: "Dead letters that the job parked after `--max-attempts` failed "
        "attempts.",
        RepairOutcome.WAITING: "Dead letters that the job wrote back unchanged, for a later run or "
        "a newer version.",
        RepairOutcome.REFUSED: "Parked dead letters: the job cannot prove that their objects may "
        "be deleted, and deletes none of them.",
        RepairOutcome.UNREADABLE: "Records that the job parked because they are corrupt, too "
        "large, or not dead letters. It truncates a record above 900,000 bytes; the header `from` "
        "is the location of the whole record.",
        RepairOutcome.SUPERSEDED: "Dead letters that the job skipped because the same batch has a "
        "later one about the same segment or orphan. A refused dead letter about a segment "
        "supersedes none.",
    }
)
"""What each outcome means, for docs/spark-jobs.md."""

_OF_ACTION = {
    RepairAction.DELETE: RepairOutcome.REPAIRED,
    RepairAction.DELETE_OBJECTS: RepairOutcome.REPAIRED,
    RepairAction.REFUSE: RepairOutcome.REFUSED,
    RepairAction.WAIT: RepairOutcome.WAITING,
    RepairAction.SUPERSEDED: RepairOutcome.SUPERSEDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTopics:
    """Represents the topics of outcome records, and the failed attempts before parking."""

    metadata_topic: str
    metadata_partition_count: int
    dead_letter_topic: str
    parking_topic: str
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedDeadLetter:
    """Represents a record of the dead-letter topic, and its decoded content."""

    location: DeadLetterLocation
    key: bytes | None
    value: bytes
    dead_letter: AnyDeadLetter | UnreadableDeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Represents a dead letter's outcome, the reason, and a record to write.

    `dead_letter` is None if it is unreadable.
    """

    name: RepairOutcome
    dead_letter: AnyDeadLetter | None
    reason: str = ""
    record: OutgoingRecord | None = None


def unreadable(
    received: ReceivedDeadLetter, problem: UnreadableDeadLetter, topics: OutcomeTopics
) -> Outcome:
    """Park the record; write it back if a newer version of the job may be able to read it."""
    if problem.is_newer:
        return _waiting(received, problem.reason, topics)
    return _parked(received, RepairOutcome.UNREADABLE, problem.reason, topics)


def expected_outcome(
    dead_letter: AnyDeadLetter | UnreadableDeadLetter, decide: Callable[[AnyDeadLetter], Decision]
) -> RepairOutcome:
    """Return the outcome of a dead letter if its removal does not fail and is not refused."""
    if isinstance(dead_letter, UnreadableDeadLetter):
        return RepairOutcome.WAITING if dead_letter.is_newer else RepairOutcome.UNREADABLE
    return _OF_ACTION[decide(dead_letter).action]


def outcome_of(
    received: ReceivedDeadLetter,
    dead_letter: AnyDeadLetter,
    decision: Decision,
    removal: Removal | None,
    topics: OutcomeTopics,
    now_ms: int,
) -> Outcome:
    """Return the outcome; `removal` is None if the decision does not allow deletion."""
    if decision.action is RepairAction.SUPERSEDED:
        return Outcome(name=RepairOutcome.SUPERSEDED, dead_letter=dead_letter)
    if decision.action is RepairAction.WAIT:
        return _waiting(received, decision.reason, topics)
    if removal is None:
        return _parked(received, RepairOutcome.REFUSED, decision.reason, topics)
    if removal.refusal:
        return _parked(received, RepairOutcome.REFUSED, removal.refusal, topics)
    if removal.outage:
        return _waiting(received, removal.outage, topics)
    if removal.failure:
        return _failed(received, dead_letter, removal.failure, topics, now_ms)
    record = None
    if decision.action is RepairAction.DELETE and isinstance(dead_letter, DeadLetter):
        record = _end_of_deletion(dead_letter, received.value, topics, now_ms)
    return Outcome(name=RepairOutcome.REPAIRED, dead_letter=dead_letter, record=record)


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
    """Write the dead letter back with one more attempt; park it if this is the last attempt."""
    again = with_failed_attempt(dead_letter, failure[:_REASON_MAX_CHARS], now_ms)
    if repair_attempts(again) >= topics.max_attempts:
        reason = f"the job gave up (failed attempts: {repair_attempts(again)}): {failure}"
        return _parked(received, RepairOutcome.GIVEN_UP, reason, topics)
    return Outcome(
        name=RepairOutcome.FAILED,
        dead_letter=dead_letter,
        reason=failure,
        record=_back(again, topics),
    )


def _waiting(received: ReceivedDeadLetter, reason: str, topics: OutcomeTopics) -> Outcome:
    """Write the record back unchanged: a newer version may have written more fields."""
    record = OutgoingRecord(topic=topics.dead_letter_topic, key=received.key, value=received.value)
    return Outcome(
        name=RepairOutcome.WAITING, dead_letter=_known(received), reason=reason, record=record
    )


def _back(dead_letter: AnyDeadLetter, topics: OutcomeTopics) -> OutgoingRecord:
    encoded = write_dead_letter(dead_letter)
    return OutgoingRecord(topic=topics.dead_letter_topic, key=encoded.key, value=encoded.value)


def _parked(
    received: ReceivedDeadLetter, name: RepairOutcome, reason: str, topics: OutcomeTopics
) -> Outcome:
    """Park the unchanged record, with the reason and the record's original location.

    Truncates a record that is too large. The reason then contains the location of the whole record.
    """
    partition, offset = received.location
    location = f"{topics.dead_letter_topic}-{partition}@{offset}"
    key = None if received.key is None else received.key[:DEAD_LETTER_MAX_BYTES]
    value = received.value[: DEAD_LETTER_MAX_BYTES - len(key or b"")]
    text = reason[:_REASON_MAX_CHARS]
    if (key, value) != (received.key, received.value):
        text = f"{text}. This record is truncated; the whole record is at {location}"
    record = OutgoingRecord(
        topic=topics.parking_topic,
        key=key,
        value=value,
        headers=(("reason", text.encode()), ("from", location.encode())),
    )
    return Outcome(name=name, dead_letter=_known(received), reason=reason, record=record)


def _known(received: ReceivedDeadLetter) -> AnyDeadLetter | None:
    return None if isinstance(received.dead_letter, UnreadableDeadLetter) else received.dead_letter
