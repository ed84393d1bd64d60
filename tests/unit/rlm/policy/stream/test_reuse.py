"""Which unfinished streams the next segment may use, and whose objects stay for it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.policy.plan import plan
from rlm.policy.stream.reuse import awaited_streams, reusable_streams
from rlm.policy.view import PartitionView
from rlmm.spi import SegmentRecord
from rsm.segment.metadata import SegmentState, Writer
from rsm.segment.offload_settings import OffloadMode
from tests.metadata_builder import DELETE_FINISHED, DELETE_STARTED, STARTED
from tests.unit.rlm.policy.views import NOW_MS, POLICY, THEM, US, Given, policy, remote

BEGIN = 100


def unfinished(
    state: SegmentState = DELETE_STARTED,
    *,
    number: int = 0,
    start: int = BEGIN,
    writer: Writer = US,
    deadline_ms: int = NOW_MS,
    changed_ms: int = 0,
    is_dead_lettered: bool = False,
    is_open: bool = True,
) -> SegmentRecord:
    record = remote(
        start,
        start + 1,
        state=state,
        writer=writer,
        size=0,
        number=number,
        copy_deadline_ms=deadline_ms,
        changed_ms=changed_ms,
        is_dead_lettered=is_dead_lettered,
    )
    return replace(record, metadata=replace(record.metadata, is_open=is_open))


def found_in(*records: SegmentRecord, spent: frozenset[UUID] = frozenset()) -> list[SegmentRecord]:
    return list(
        reusable_streams(
            records,
            begin_offset=BEGIN,
            incarnation=US.incarnation,
            broker_ms=NOW_MS,
            spent=spent,
        )
    )


@pytest.mark.parametrize("record", [unfinished(), unfinished(writer=THEM), unfinished(STARTED)])
def test_stream_when_it_ended_without_an_end_then_may_be_used(record: SegmentRecord) -> None:
    assert found_in(record) == [record]


@pytest.mark.parametrize(
    "record",
    [
        unfinished(STARTED, writer=THEM),
        unfinished(DELETE_FINISHED),
        unfinished(start=BEGIN - 1),
        unfinished(start=BEGIN + 1),
        unfinished(deadline_ms=NOW_MS - 1),
        unfinished(is_dead_lettered=True),
        unfinished(is_open=False),
    ],
)
def test_segment_when_another_process_has_it_or_it_is_no_such_stream_then_is_not_used(
    record: SegmentRecord,
) -> None:
    assert found_in(record) == []


def test_stream_when_its_parts_are_needed_no_longer_then_is_not_used() -> None:
    record = unfinished()

    assert found_in(record, spent=frozenset({record.metadata.segment_id.id})) == []


def test_streams_when_there_are_many_then_the_eight_oldest_ones() -> None:
    records = [unfinished(number=9 - n, changed_ms=n) for n in range(9)]

    assert found_in(*reversed(records)) == records[:8]


def _view(record: SegmentRecord, spent: frozenset[UUID] | None = frozenset()) -> PartitionView:
    stored = remote(0, BEGIN)
    streamed = replace(POLICY, offload_mode=OffloadMode.STREAM)
    given = Given(policy=streamed, segments=(stored, record), log_start=0)
    return replace(given.view(), spent_streams=spent)


def _deleted(view: PartitionView) -> list[SegmentRecord]:
    return [each.record for each in plan(view).deletions]


@pytest.mark.parametrize("state", [STARTED, DELETE_STARTED])
def test_deletion_when_the_next_segment_may_use_the_stream_then_waits(state: SegmentState) -> None:
    record = unfinished(state)

    assert awaited_streams(_view(record)) == (record,)
    assert _deleted(_view(record)) == []


@pytest.mark.parametrize("state", [STARTED, DELETE_STARTED])
def test_deletion_when_the_stream_is_of_no_use_then_does_not_wait(state: SegmentState) -> None:
    record = unfinished(state)
    spent = frozenset({record.metadata.segment_id.id})
    copied = replace(_view(record), policy=policy())
    late = unfinished(state, deadline_ms=NOW_MS - 1)

    assert _deleted(_view(record, spent)) == [record]
    assert _deleted(_view(record, None)) == [record]
    assert _deleted(copied) == [record]
    assert _deleted(_view(late)) == [late]


@pytest.mark.parametrize("is_permitted", [True, False])
def test_deletion_when_the_next_segment_is_being_sent_then_waits_past_the_deadline(
    *, is_permitted: bool
) -> None:
    """Also without another permit, because the open segment still ends with what it has."""
    late = unfinished(deadline_ms=NOW_MS - 1)
    sent = unfinished(STARTED, number=1)
    view = replace(
        _view(late),
        segments=(remote(0, BEGIN), late, sent),
        in_flight=frozenset({sent.metadata.segment_id.id}),
    )
    view = view if is_permitted else replace(view, policy=policy())

    assert _deleted(view) == []
    spent = frozenset({late.metadata.segment_id.id})
    assert _deleted(replace(view, spent_streams=spent)) == [late]
