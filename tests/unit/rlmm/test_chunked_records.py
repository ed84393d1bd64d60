"""Records of segments in chunks: older versions set them aside, this one reads all of them."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.cache.values import objects_named
from rlmm.codec import FOLD_VERSION, decode, encode, needed_fold_version
from rlmm.dead_letters import dead_letter, orphan_dead_letter
from rlmm.dead_letters.dead_letter import DeadLetter, end_of_deletion
from rlmm.events.segment import SegmentEvent
from rlmm.fold import parse_record
from rlmm.proto import dead_letter_pb2
from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.metadata import SegmentState, StoredObject
from tests.metadata_builder import DELETE_FINISHED, DELETE_STARTED, STARTED, segment_metadata, step

INLINE = segment_metadata()
CHUNKED = replace(
    INLINE,
    layout="chunked",
    objects=(
        StoredObject(key="a.log.00000", length_bytes=100, crc32c=1),
        StoredObject(key="a.log.00001", length_bytes=7, crc32c=2),
        StoredObject(key="a.log.00002"),
        StoredObject(key="a.meta", length_bytes=50, crc32c=3),
    ),
)
LETTER = DeadLetter(
    metadata=replace(CHUNKED, state=DELETE_STARTED),
    reason="the store refuses",
    attempts=3,
    first_attempt_ms=1,
    last_attempt_ms=2,
)
_OLDER_RULES = 4
_ORPHANS_VERSION = 2


@pytest.mark.parametrize("state", SegmentState)
def test_record_when_it_has_a_table_then_older_rules_set_it_aside_in_every_state(
    state: SegmentState,
) -> None:
    """R14: older rules know only the objects outside of the table, and would delete only those."""
    of_chunked, of_inline = (encode(step(each, state)) for each in (CHUNKED, INLINE))

    message = pb.MetadataEvent.FromString(of_chunked.value)

    assert [each.key for each in message.segment.metadata.objects] == ["a.meta"]
    assert _OLDER_RULES < needed_fold_version(of_chunked.value) <= FOLD_VERSION
    assert needed_fold_version(of_inline.value) == 1


def test_record_when_it_is_read_then_has_all_objects() -> None:
    record = encode(step(CHUNKED, STARTED))

    event = decode(record.key, record.value)

    assert isinstance(event, SegmentEvent)
    assert event.metadata.objects == CHUNKED.objects
    assert objects_named(record.value).names == CHUNKED.object_keys


def test_record_when_its_table_is_malformed_then_corrupt_for_the_fold_and_the_codec() -> None:
    record = encode(step(CHUNKED, STARTED))
    message = pb.MetadataEvent.FromString(record.value)
    message.segment.metadata.chunks.planned_count = 1 << 30

    for read in (decode, parse_record):
        with pytest.raises(CorruptError):
            read(record.key, message.SerializeToString())


def test_dead_letter_when_the_segment_has_chunks_then_older_jobs_leave_it() -> None:
    """Scenario 74: older jobs would delete the companion alone, and end the deletion."""
    value = dead_letter.encode(LETTER).value
    message = dead_letter_pb2.DeadLetter.FromString(value)

    assert dead_letter.decode(value) == LETTER
    assert message.min_fold_version > _ORPHANS_VERSION
    assert list(message.object_keys) == ["a.meta"]
    with pytest.raises(UnsupportedError, match="newer version"):
        orphan_dead_letter.decode(value)


def test_end_of_deletion_when_the_segment_has_chunks_then_needs_the_same_rules() -> None:
    finished = CHUNKED.in_state(DELETE_FINISHED, event_timestamp_ms=9)
    event_id = UUID(int=5)

    record = end_of_deletion(
        LETTER, dead_letter.encode(LETTER).value, event_id=event_id, event_timestamp_ms=9
    )

    assert record == encode(SegmentEvent(event_id=event_id, metadata=finished))
