"""Records that only a newer version can fold: what they concern, and for how long."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from uuid import UUID

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.codec import encode
from rlmm.events import Event
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import (
    RecordKind,
    partition_key,
    policy_key,
    segment_key,
)
from rlmm.spi import MetadataPosition, NewerRecord
from rlmm.topic.memory import MemoryLog
from tests.folding import append, fold_log, folded, log_of
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    claim,
    policy,
    registration,
    segment_metadata,
    step,
)

SEGMENT = segment_metadata()


NEWER = pb.MetadataEvent(min_fold_version=7).SerializeToString()
OTHER = replace(ORDERS, partition=1)


@pytest.mark.parametrize(
    ("key", "concerns"),
    [
        (segment_key(SEGMENT.segment_id, UUID(int=1)), {ORDERS}),
        (partition_key(RecordKind.TRIM, OTHER, UUID(int=1)), {OTHER}),
        (policy_key(ORDERS.topic_id), {ORDERS, OTHER}),
        (policy_key(UUID(int=99)), set()),
        (encode(registration(1)).key, {ORDERS, OTHER}),
        (b"\x7fwhatever a newer version puts here", {ORDERS, OTHER}),
        (b"", {ORDERS, OTHER}),
    ],
)
def test_newer_record_when_read_then_concerns_what_its_key_names(
    key: bytes, concerns: set[object]
) -> None:
    """R14: the partition or topic that the key names, everything if that is not known."""
    log = log_of(registration(1))
    log.append(0, key, NEWER)

    cache = folded(log)

    expected = NewerRecord(needs_fold_version=7, position=MetadataPosition(partition=0, offset=1))
    assert {tip for tip in (ORDERS, OTHER) if cache.newer_record(tip) == expected} == concerns
    assert cache.newer_records_count() == 1


@pytest.mark.parametrize("ending", [None, encode(policy()).value])
def test_newer_record_when_removed_or_replaced_then_concerns_nothing(
    ending: bytes | None,
) -> None:
    """R14: a rollback that writes the policy anew ends it."""
    log = log_of()
    log.append(0, policy_key(ORDERS.topic_id), NEWER)
    log.append(0, policy_key(ORDERS.topic_id), ending)

    assert folded(log).newer_record(ORDERS) is None


def test_newer_record_when_read_then_the_rest_is_still_folded() -> None:
    """R14, scenario 102: skipped and counted; what is known is served."""
    log = log_of(claim())
    log.append(0, segment_key(SEGMENT.segment_id, UUID(int=1)), NEWER)
    append(log, step(SEGMENT, FINISHED))

    (skipped,) = (c.skipped for c in fold_log(log, MemoryStore()))

    assert skipped == {"newer_version": 1}
    assert folded(log).finished_segment(ORDERS, 0, 5) is not None


def with_a_newer_field(event: Event, path: str) -> tuple[bytes, bytes]:
    """The event's record as a newer version would write it: one more field in a part of it."""
    record = encode(event)
    message = pb.MetadataEvent.FromString(record.value)
    part = attrgetter(path)(message)
    part.MergeFromString(NEW_FIELD)
    return record.key, message.SerializeToString()


# Field 900, which no version has: three bytes.
NEW_FIELD = b"\xa2\x38\x03new"


def test_segment_when_stepping_on_then_keeps_what_a_newer_version_wrote() -> None:
    """R14: unknown fields survive a rewrite."""
    log = log_of(claim())
    log.append(0, *with_a_newer_field(step(SEGMENT, FINISHED), "segment.metadata"))
    record = folded(log).segment(SEGMENT.segment_id)
    assert record is not None

    written = encode(step(record.metadata, DELETE_STARTED, expected_state=FINISHED)).value

    assert NEW_FIELD in written


def test_policy_when_changed_then_keeps_what_a_newer_version_wrote() -> None:
    """R14: also what stands in the cache."""
    log = MemoryLog(ManualClock())
    log.append(0, *with_a_newer_field(policy(), "topic_policy_changed"))
    found = folded(log).topic_policy(ORDERS.topic_id)
    assert found is not None

    written = encode(replace(policy(), policy=replace(found, retention_ms=5))).value

    assert NEW_FIELD in written
