"""Dead letters of both kinds: reading them, retrying them, and whose objects they name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.dead_letters import dead_letter, orphan_dead_letter
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rlmm.positions import MetadataPosition
from rlmm.proto import dead_letter_pb2 as pb
from rsm.layout.keys import LedgerKey, LedgerPart, ObjectKey, ObjectKeys
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from spark_tools.repair.dead_letters import (
    DEAD_LETTER_MAX_BYTES,
    AnyDeadLetter,
    UnreadableDeadLetter,
    foreign_object_reason,
    read_dead_letter,
    repair_attempts,
    subject_of,
    with_failed_attempt,
    write_dead_letter,
)
from tests.metadata_builder import DELETE_STARTED, segment_metadata

KEYS = ObjectKeys(prefix="cold")
SEGMENT, OTHER = (segment_metadata(number, 100, 200, state=DELETE_STARTED) for number in (1, 2))
DEAD = DeadLetter(
    metadata=SEGMENT, reason="refused", attempts=5, first_attempt_ms=1, last_attempt_ms=2
)
ORPHAN = OrphanDeadLetter(
    object_key="cold/7.log",
    length_bytes=1,
    last_modified_ms=1,
    first_seen_ms=1,
    last_seen_ms=2,
    treatment=OrphanTreatment.DELETE,
    read_to=MetadataPosition(partition=0, offset=1),
    metadata_topic_id="a-topic-id",
    attempts=3,
)


def key_of(segment: RemoteLogSegmentMetadata, *, base_offset: int = 100) -> str:
    key = ObjectKey(segment_id=segment.segment_id, base_offset=base_offset, suffix="log")
    return KEYS.build(key)


def ledger_of(segment: RemoteLogSegmentMetadata) -> str:
    part = LedgerPart.DATA
    return KEYS.build(LedgerKey(segment_id=segment.segment_id, base_offset=100, part=part))


@pytest.mark.parametrize("item", [DEAD, ORPHAN])
def test_dead_letter_when_written_and_read_then_is_the_same(item: AnyDeadLetter) -> None:
    record = write_dead_letter(item)

    assert read_dead_letter(record.key, record.value) == item
    assert read_dead_letter(None, record.value) == item


@pytest.mark.parametrize(
    ("value", "is_newer"),
    [
        pytest.param(b"\xff", False, id="broken"),
        pytest.param(pb.DeadLetter(min_fold_version=99).SerializeToString(), True, id="newer"),
    ],
)
def test_dead_letter_when_it_cannot_be_read_then_says_whether_a_newer_version_can(
    value: bytes, *, is_newer: bool
) -> None:
    found = read_dead_letter(b"key", value)

    assert isinstance(found, UnreadableDeadLetter)
    assert found.is_newer is is_newer


@pytest.mark.parametrize(("key_bytes", "is_too_large"), [(0, False), (1, True)])
def test_dead_letter_when_key_and_value_are_too_large_then_is_no_letter(
    key_bytes: int, *, is_too_large: bool
) -> None:
    """At the limit it is read, and found to be broken."""
    found = read_dead_letter(bytes(key_bytes), b"\xff" * DEAD_LETTER_MAX_BYTES)

    assert isinstance(found, UnreadableDeadLetter)
    assert ("larger than a dead letter can be" in found.reason) is is_too_large
    assert not found.is_newer


def test_attempt_when_it_fails_then_both_counts_of_a_dead_letter_rise() -> None:
    """Managers count their own attempts in the same dead letters."""
    again = with_failed_attempt(with_failed_attempt(DEAD, "first", 7), "second", 8)

    assert isinstance(again, DeadLetter)
    assert (again.attempts, repair_attempts(again)) == (7, 2)
    assert (again.reason, again.first_attempt_ms, again.last_attempt_ms) == ("second", 1, 8)


def test_attempt_when_it_fails_then_the_count_of_an_orphan_rises() -> None:
    again = with_failed_attempt(ORPHAN, "refused", 7)

    assert isinstance(again, OrphanDeadLetter)
    assert (repair_attempts(again), again.reason, again.last_attempt_ms) == (4, "refused", 7)


def test_subject_when_letters_are_about_one_thing_then_is_the_same() -> None:
    assert subject_of(replace(DEAD, attempts=9)) == subject_of(DEAD) == str(SEGMENT.segment_id)
    assert subject_of(ORPHAN) == "cold/7.log"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        pytest.param((), "", id="nothing"),
        pytest.param((key_of(SEGMENT),), "", id="its own"),
        pytest.param((ledger_of(SEGMENT),), "", id="its own in the other form"),
        pytest.param((key_of(SEGMENT, base_offset=7),), "", id="its own by the id"),
        pytest.param(("warm/listed.log",), "", id="one that the metadata has of the segment"),
        pytest.param(
            ("warm/listed.log", key_of(SEGMENT), "warm/7.log"),
            "an object of an unknown segment: warm/7.log",
            id="one that says nothing",
        ),
        pytest.param(
            (ledger_of(SEGMENT), key_of(OTHER)),
            f"an object of another segment: {key_of(OTHER)}",
            id="another segment's",
        ),
        pytest.param(
            (ledger_of(OTHER),),
            f"an object of another segment: {ledger_of(OTHER)}",
            id="another segment's in the other form",
        ),
    ],
)
def test_names_when_one_is_not_shown_to_be_the_segments_then_says_which(
    names: tuple[str, ...], reason: str
) -> None:
    """R22."""
    objects = tuple(StoredObject(key=name) for name in names)
    item = replace(DEAD, metadata=replace(SEGMENT, objects=objects))

    found = foreign_object_reason(item, KEYS, {"warm/listed.log", key_of(OTHER)})

    assert found == (f"the dead letter names {reason}" if reason else "")


def test_dead_letters_when_encoded_then_as_their_own_modules_do() -> None:
    assert write_dead_letter(DEAD) == dead_letter.encode(DEAD)
    assert write_dead_letter(ORPHAN) == orphan_dead_letter.encode(ORPHAN)
