"""Invalid records: each is dropped and reported, and the fold continues."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.codec import FOLD_VERSION, EncodedRecord, encode
from rlmm.events.event import Event
from rlmm.proto import events_pb2 as pb
from rlmm.topic.memory import MemoryLog
from tests.folding import append, fold_log
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    STARTED,
    claim,
    segment_metadata,
    step,
    writer,
)

BAD, GOOD = segment_metadata(1, 0, 100), segment_metadata(2, 100, 200)


def _bent(change: Callable[[pb.MetadataEvent], None]) -> EncodedRecord:
    record = encode(step(BAD, FINISHED))
    message = pb.MetadataEvent.FromString(record.value)
    change(message)
    return EncodedRecord(key=record.key, value=message.SerializeToString())


def _without_offsets(message: pb.MetadataEvent) -> None:
    message.segment.metadata.end_offset = message.segment.metadata.start_offset


def _backwards(message: pb.MetadataEvent) -> None:
    message.segment.metadata.start_offset = 200


def _of_a_newer_version(message: pb.MetadataEvent) -> None:
    message.min_fold_version = FOLD_VERSION + 1


def _in_an_unknown_state(message: pb.MetadataEvent) -> None:
    message.MergeFromString(b"\x52\x05\x0a\x03\x40\xe3\x00")  # segment.metadata.state = 99


def _of_another_segment(message: pb.MetadataEvent) -> None:
    message.segment.metadata.id = bytes(16)


GARBLED = EncodedRecord(key=encode(step(BAD, FINISHED)).key, value=b"\xff\xff")
NO_KEY = EncodedRecord(key=b"", value=b"")
SHORT_KEY = EncodedRecord(key=b"\x01short", value=b"")
UNKNOWN_KIND = EncodedRecord(key=b"\x7f" + bytes(36), value=b"")
UNREADABLE = {
    "not protobuf": (GARBLED, "corrupt"),
    "has no key": (NO_KEY, "corrupt"),
    "the record's key has a wrong length": (SHORT_KEY, "corrupt"),
    "an unknown kind": (UNKNOWN_KIND, "unsupported"),
    "an empty range": (_bent(_without_offsets), "corrupt"),
    "a backward range": (_bent(_backwards), "corrupt"),
    "an unknown state": (_bent(_in_an_unknown_state), "unsupported"),
    "a newer version": (_bent(_of_a_newer_version), "newer_version"),
    "a key of another": (_bent(_of_another_segment), "corrupt"),
}
IMPOSSIBLE: dict[str, list[Event]] = {
    "step_back": [step(GOOD, FINISHED), step(GOOD, STARTED)],
    "skipped_state": [step(BAD, STARTED), step(BAD, DELETE_FINISHED)],
    "unknown_segment": [step(BAD, DELETE_FINISHED)],
    "not_owner": [step(BAD, FINISHED), step(BAD, DELETE_STARTED, by=writer(9))],
    "stale_epoch": [claim(writer(5)), claim(writer(4))],
}


@pytest.mark.parametrize(("record", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_record_when_it_cannot_be_read_then_is_counted_and_the_rest_is_folded(
    record: EncodedRecord, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario 102 and bad input: each kind is logged once, with its first position."""
    log, store = MemoryLog(ManualClock()), MemoryStore()
    append(log, claim())
    for _ in range(3):
        log.append(0, record.key, record.value)
    append(log, step(GOOD, FINISHED))

    with caplog.at_level(logging.INFO):
        counts = fold_log(log, store, max_records=2)

    assert sum(each.skipped.get(reason, 0) for each in counts) == 3
    assert sum(each.accepted for each in counts) == 2
    assert [r.metadata.segment_id for r in MetadataCache(store).segments(ORDERS)] == [
        GOOD.segment_id
    ]
    (line,) = [each for each in caplog.messages if "skipped a metadata record" in each]
    assert f"reason={reason}" in line
    assert "partition=0 offset=1" in line


@pytest.mark.parametrize("reason", IMPOSSIBLE)
def test_transition_when_impossible_then_is_counted_by_reason_and_logged_once(
    reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario 29."""
    *before, impossible = IMPOSSIBLE[reason]
    log = MemoryLog(ManualClock())
    for event in (*before, impossible, impossible):
        append(log, event)

    with caplog.at_level(logging.INFO):
        counts = fold_log(log, MemoryStore(), max_records=1)

    assert sum(each.refused.get(reason, 0) for each in counts) == 2
    (line,) = [each for each in caplog.messages if "refused a metadata record" in each]
    assert f"partition=0 offset={len(before)}" in line
