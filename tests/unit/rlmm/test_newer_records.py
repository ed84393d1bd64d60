"""Records that only a newer version can fold: what they concern, and for how long."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.codec import encode
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import (
    RecordKind,
    partition_key,
    policy_key,
    segment_key,
)
from rlmm.spi import MetadataPosition, NewerRecord
from tests.folding import append, fold_log, folded, log_of
from tests.metadata_builder import (
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
