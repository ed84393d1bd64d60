from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.codec import encode as encode_event
from rlmm.dead_letters.dead_letter import DeadLetter, decode, encode, end_of_deletion
from rlmm.events.segment import SegmentEvent
from rlmm.positions import MetadataPosition
from rlmm.proto import dead_letter_pb2 as pb
from rlmm.record_keys import segment_subject
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.metadata_builder import DELETE_FINISHED, DELETE_STARTED, segment_metadata

METADATA = segment_metadata(state=DELETE_STARTED)
TIMES = st.integers(0, 2**62)
LETTERS = st.builds(
    DeadLetter,
    metadata=st.just(METADATA),
    reason=st.text(max_size=20),
    attempts=st.integers(0, 2**31 - 1),
    first_attempt_ms=TIMES,
    last_attempt_ms=TIMES,
    delete_started=st.none()
    | st.builds(MetadataPosition, partition=st.integers(0, 49), offset=TIMES),
    metadata_topic_id=st.sampled_from(["", "a-topic-id"]),
    repair_attempts=st.integers(0, 2**31 - 1),
)


@given(LETTERS)
def test_dead_letter_when_encoded_and_decoded_then_is_the_same(dead_letter: DeadLetter) -> None:
    """Scenario 73, R22."""
    record = encode(dead_letter)

    assert decode(record.value) == dead_letter
    assert record.key == segment_subject(METADATA.segment_id)


@given(LETTERS)
def test_dead_letter_when_read_by_others_then_names_its_objects(dead_letter: DeadLetter) -> None:
    message = pb.DeadLetter.FromString(encode(dead_letter).value)

    assert tuple(message.object_keys) == dead_letter.object_keys == METADATA.object_keys


@given(LETTERS, st.uuids(), TIMES)
def test_end_of_deletion_when_made_of_a_letter_then_is_the_event_of_its_segment(
    dead_letter: DeadLetter, event_id: UUID, now_ms: int
) -> None:
    """Scenario 74."""
    finished = METADATA.in_state(DELETE_FINISHED, event_timestamp_ms=now_ms)

    record = end_of_deletion(
        dead_letter, encode(dead_letter).value, event_id=event_id, event_timestamp_ms=now_ms
    )

    assert record == encode_event(SegmentEvent(event_id=event_id, metadata=finished))


@given(st.binary(max_size=30))
def test_dead_letter_when_bytes_are_arbitrary_then_is_corrupt(value: bytes) -> None:
    with pytest.raises((CorruptError, UnsupportedError)):
        decode(value)


@given(LETTERS)
def test_dead_letter_when_of_a_newer_version_then_is_unsupported(dead_letter: DeadLetter) -> None:
    message = pb.DeadLetter.FromString(encode(dead_letter).value)
    message.min_fold_version = 99

    with pytest.raises(UnsupportedError):
        decode(message.SerializeToString())
