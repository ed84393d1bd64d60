from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.dead_letters import dead_letter
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment, decode, encode
from rlmm.positions import MetadataPosition
from rlmm.proto import dead_letter_pb2 as pb
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.metadata_builder import DELETE_STARTED, segment_metadata

TIMES = st.integers(0, 2**62)
LETTERS = st.builds(
    OrphanDeadLetter,
    object_key=st.text(min_size=1, max_size=20),
    length_bytes=TIMES,
    last_modified_ms=TIMES,
    first_seen_ms=TIMES,
    last_seen_ms=TIMES,
    treatment=st.sampled_from(OrphanTreatment),
    read_to=st.builds(MetadataPosition, partition=st.integers(0, 49), offset=TIMES),
    metadata_topic_id=st.sampled_from(["", "a-topic-id"]),
    reason=st.text(max_size=20),
    attempts=st.integers(0, 2**31 - 1),
    last_attempt_ms=TIMES,
)


@given(LETTERS)
def test_orphan_letter_when_encoded_and_decoded_then_is_the_same(item: OrphanDeadLetter) -> None:
    """R22."""
    record = encode(item)

    assert decode(record.value) == item
    assert record.key == b"orphan:" + item.object_key.encode()


@given(LETTERS)
def test_orphan_letter_when_read_as_a_failed_deletion_then_is_left_alone(
    item: OrphanDeadLetter,
) -> None:
    """R14 and R22: orphans have dead letters of their own kind."""
    with pytest.raises(UnsupportedError):
        dead_letter.decode(encode(item).value)


def test_orphan_letter_when_of_another_kind_then_is_unsupported() -> None:
    failed = dead_letter.DeadLetter(
        metadata=segment_metadata(state=DELETE_STARTED),
        reason="refused",
        attempts=5,
        first_attempt_ms=1,
        last_attempt_ms=2,
    )

    with pytest.raises(UnsupportedError):
        decode(dead_letter.encode(failed).value)


@given(LETTERS)
def test_orphan_letter_when_of_a_newer_version_then_is_unsupported(item: OrphanDeadLetter) -> None:
    message = pb.DeadLetter.FromString(encode(item).value)
    message.min_fold_version = 99

    with pytest.raises(UnsupportedError):
        decode(message.SerializeToString())


@given(st.binary(max_size=30))
def test_orphan_letter_when_bytes_are_arbitrary_then_is_refused(value: bytes) -> None:
    with pytest.raises((CorruptError, UnsupportedError)):
        decode(value)
