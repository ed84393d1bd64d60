"""The outcome records of dead letters that are larger than topics accept."""

from __future__ import annotations

import pytest

from rlmm.dead_letters.dead_letter import DeadLetter, decode, encode
from spark_tools.repair.dead_letters import (
    DEAD_LETTER_MAX_BYTES,
    UnreadableDeadLetter,
    read_dead_letter,
)
from spark_tools.repair.outcomes import (
    OutcomeTopics,
    ReceivedDeadLetter,
    outcome_of,
    unreadable,
)
from spark_tools.repair.proof import Decision, RepairAction
from spark_tools.repair.removal import Removal
from tests.metadata_builder import DELETE_STARTED, segment_metadata

_KAFKAS_DEFAULT_BYTES = 1_000_000  # message.max.bytes of librdkafka; brokers take more
TOPICS = OutcomeTopics(
    metadata_topic="metadata",
    metadata_partition_count=7,
    dead_letter_topic="letters",
    parking_topic="parked",
    max_attempts=2,
)


def received(key: bytes | None, value: bytes) -> ReceivedDeadLetter:
    return ReceivedDeadLetter(
        location=(3, 17), key=key, value=value, dead_letter=read_dead_letter(key, value)
    )


def dead_letter() -> DeadLetter:
    return DeadLetter(
        metadata=segment_metadata(1, state=DELETE_STARTED),
        reason="refused",
        attempts=5,
        first_attempt_ms=1,
        last_attempt_ms=2,
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, bytes(1_048_000)),
        (b"key", encode(dead_letter()).value + bytes(20_000_000)),
        (bytes(5_000_000), b"value"),
    ],
)
def test_unreadable_when_it_is_too_large_then_parked_cut_off_with_its_place(
    key: bytes | None, value: bytes
) -> None:
    """Scenario 79: a record that is too large would be refused, and stop the job permanently."""
    one = received(key, value)
    assert isinstance(one.dead_letter, UnreadableDeadLetter)

    record = unreadable(one, one.dead_letter, TOPICS).record

    assert record is not None
    headers = dict(record.headers)
    whole = [*record.headers, ("key", record.key or b""), ("value", record.value)]
    assert sum(len(each) for _, each in whole) < _KAFKAS_DEFAULT_BYTES
    assert (key or b"").startswith(record.key or b"")
    assert value.startswith(record.value)
    assert headers["from"] == b"letters-3@17"
    where = "This record is truncated; the whole record is at letters-3@17"
    assert headers["reason"].endswith(f", max={DEAD_LETTER_MAX_BYTES}). {where}".encode())


def test_unreadable_when_it_fits_then_parked_as_it_is() -> None:
    one = received(None, b"\xff" * DEAD_LETTER_MAX_BYTES)
    assert isinstance(one.dead_letter, UnreadableDeadLetter)

    record = unreadable(one, one.dead_letter, TOPICS).record

    assert record is not None
    assert (record.key, record.value) == (None, one.value)
    assert b"cut off" not in dict(record.headers)["reason"]


def test_outcome_when_a_reason_is_long_then_what_is_written_has_its_beginning() -> None:
    """Reasons name objects, and a dead letter may contain any name."""
    encoded, reason = encode(dead_letter()), "refused " * 200_000
    one = received(encoded.key, encoded.value)
    refused, proved = (
        Decision(action=RepairAction.REFUSE, reason=reason),
        Decision(action=RepairAction.DELETE),
    )

    parked = outcome_of(one, dead_letter(), refused, None, TOPICS, 9).record
    back = outcome_of(one, dead_letter(), proved, Removal(failure=reason), TOPICS, 9).record

    assert parked is not None
    assert dict(parked.headers)["reason"] == reason[:1_000].encode()
    assert back is not None
    assert decode(back.value).reason == reason[:1_000]
