from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmm.cache.keys import MAX_OFFSET
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import Table
from rlmm.cache.segment_view import SegmentView
from rlmm.events.event import Event
from rlmm.record_keys import partition_subject
from rlmm.topic.memory import MemoryLog
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from tests.example_counts import examples
from tests.folding import append, contents, fold_log, folded, log_of
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    STARTED,
    claim,
    segment_metadata,
    step,
)

OFFSETS = range(40)
EPOCHS = range(4)


def cache_of(*events: Event) -> MetadataCache:
    log = MemoryLog(ManualClock())
    for event in events:
        append(log, event)
    return folded(log)


def finished(*segments: RemoteLogSegmentMetadata) -> MetadataCache:
    return cache_of(*(step(segment, FINISHED) for segment in segments))


@contextmanager
def view_of(*events: Event) -> Iterator[SegmentView]:
    store = MemoryStore()
    fold_log(log_of(*events), store)
    with store.read(Table.SEGMENTS, Table.UNFINISHED_BY_OFFSET) as reader:
        yield SegmentView(store, reader, partition_subject(ORDERS))


def found_number(cache: MetadataCache, offset: int, epoch: int = 0) -> int | None:
    found = cache.finished_segment(ORDERS, offset, leader_epoch=epoch)
    return found.segment_id.id.int if found else None


@st.composite
def segments(draw: st.DrawFn) -> list[RemoteLogSegmentMetadata]:
    found = []
    for number in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, 30))
        end = draw(st.integers(start + 1, 40))
        starts = [start, *sorted(draw(st.lists(st.integers(start, end - 1), max_size=2)))]
        chosen = draw(st.sets(st.sampled_from(EPOCHS), min_size=3, max_size=3))
        epochs = tuple(zip(sorted(chosen), starts, strict=False))
        found.append(segment_metadata(number, start, end, epochs=epochs))
    return found


def naive(segments: list[RemoteLogSegmentMetadata], epoch: int, offset: int) -> int | None:
    """Return KIP-405's answer from all segments: furthest end, then last start, greatest id."""
    covering = []
    for segment in segments:
        lineage = segment.segment_leader_epochs
        start, end = lineage.start_offset(epoch), lineage.end_offset(epoch)
        end = segment.offsets.end_offset if end is None else end
        if start is not None and start <= offset < end:
            covering.append((end, start, segment.segment_id.id.int))
    return max(covering)[2] if covering else None


@settings(max_examples=examples(3))
@given(segments(), st.data())
def test_lookup_when_segments_overlap_then_answers_as_a_naive_search(
    segments: list[RemoteLogSegmentMetadata], data: st.DataObject
) -> None:
    """Scenario 32: a function of the set of finished segments, whatever the order of the events."""
    cache = finished(*data.draw(st.permutations(segments)))

    found = {(e, o): found_number(cache, o, e) for e in EPOCHS for o in OFFSETS}

    assert found == {(e, o): naive(segments, e, o) for e in EPOCHS for o in OFFSETS}


@settings(max_examples=examples(2))
@given(segments())
def test_highest_end_when_segments_overlap_then_is_the_greatest_of_the_epoch(
    segments: list[RemoteLogSegmentMetadata],
) -> None:
    cache = finished(*segments)

    for epoch in EPOCHS:
        offsets = [o for o in OFFSETS if naive(segments, epoch, o) is not None]
        assert cache.highest_end_offset(ORDERS, epoch) == (offsets[-1] + 1 if offsets else None)


@settings(max_examples=examples(2))
@given(segments(), st.integers(0, 41))
def test_listing_when_from_an_offset_then_holds_all_that_end_above(
    segments: list[RemoteLogSegmentMetadata], from_offset: int
) -> None:
    listed = finished(*segments).segments(ORDERS, from_offset=from_offset)

    expected = [s for s in segments if s.offsets.end_offset > from_offset]
    assert [r.metadata.segment_id for r in listed] == [
        s.segment_id
        for s in sorted(expected, key=lambda s: (s.offsets.start_offset, s.segment_id.id))
    ]


def test_lookup_when_not_finished_then_does_not_answer() -> None:
    """Scenario 31: only COPY_SEGMENT_FINISHED answers."""
    started = segment_metadata(1, 0, 10)
    deleted = segment_metadata(2, 10, 20)

    cache = cache_of(
        claim(),
        step(started, STARTED),
        step(deleted, FINISHED),
        step(deleted, DELETE_STARTED, expected_state=FINISHED),
    )

    assert [found_number(cache, offset) for offset in (5, 15)] == [None, None]


def test_listing_when_without_states_then_hides_deleted_ones_only() -> None:
    """Scenario 31: listing hides DELETE_SEGMENT_FINISHED only."""
    events: list[Event] = [claim()]
    for number, state in enumerate(SegmentState, start=1):
        metadata = segment_metadata(number, number * 10, number * 10 + 10)
        events.append(step(metadata, STARTED))
        if state.value > 1:
            events.append(step(metadata, FINISHED))
        if state.value > 2:
            events.append(step(metadata, DELETE_STARTED, expected_state=FINISHED))
        if state.value > 3:
            events.append(step(metadata, SegmentState.DELETE_SEGMENT_FINISHED))
    cache = cache_of(*events)

    assert [r.metadata.state for r in cache.segments(ORDERS)] == list(SegmentState)[:3]
    assert len(cache.segments(ORDERS, states=list(SegmentState))) == 4


def test_lookup_when_an_epoch_ends_within_a_segment_then_uses_it_only_up_to_there() -> None:
    """Scenario 8: a segment answers for an epoch only where that epoch wrote it."""
    cache = finished(segment_metadata(1, 0, 100, epochs=((0, 0), (2, 60))))

    assert [found_number(cache, o, e) for o, e in ((59, 0), (60, 0), (59, 2), (60, 2))] == [
        1,
        None,
        None,
        1,
    ]


def test_lookup_when_epochs_begin_above_the_base_then_answers_from_there() -> None:
    """Scenario 4: what lies below the log start within a segment is not readable."""
    cache = finished(segment_metadata(1, 0, 100, epochs=((3, 40),)))

    assert [found_number(cache, o, 3) for o in (39, 40)] == [None, 1]


@pytest.mark.parametrize("max_records", [1, 7])
def test_segment_when_a_later_record_begins_elsewhere_then_is_there_only(
    max_records: int,
) -> None:
    """Scenario 30: the newest accepted record counts, whatever batches the records came in."""
    log = log_of(
        claim(),
        step(segment_metadata(1, 0, 10), STARTED),
        step(segment_metadata(1, 20, 30), FINISHED),
        step(segment_metadata(2, 20, 25), STARTED),
    )
    store = MemoryStore()

    fold_log(log, store, max_records=max_records)

    cache = MetadataCache(store)
    assert [found_number(cache, offset) for offset in (5, 25)] == [None, 1]
    assert [r.metadata.segment_id.id.int for r in cache.segments(ORDERS)] == [1, 2]
    unfinished = cache.segments(ORDERS, states=[STARTED])
    assert [r.metadata.segment_id.id.int for r in unfinished] == [2]


def test_segment_when_erased_then_leaves_no_row() -> None:
    """R11: after its tombstones only the bounds of searches are left."""
    metadata = segment_metadata(1, 0, 10)
    log = log_of(step(metadata, STARTED), step(metadata, FINISHED))
    for record in list(log.records(0)):
        log.append(0, record.key, None)
    store = MemoryStore()

    fold_log(log, store, max_records=1)

    assert not any(contents(store).values())


def test_lookup_when_the_offset_or_the_epoch_is_none_that_exists_then_finds_nothing() -> None:
    cache = finished(segment_metadata(1, 0, 10))
    assert found_number(cache, 0) == 1
    assert [found_number(cache, offset) for offset in (-1, -2)] == [None, None]
    assert found_number(cache, 0, epoch=-1) is None


def test_view_when_a_segment_holds_the_greatest_offset_then_every_search_finds_it() -> None:
    """The end of a segment is an offset, too, so the greatest offset of a record is one less."""
    last = replace(segment_metadata(1, MAX_OFFSET - 1, MAX_OFFSET), has_transaction_index=True)

    with view_of(step(last, FINISHED)) as view:
        transactional = view.find_transactional(0, MAX_OFFSET - 1)
        entries = [entry for _, entry in view.entries()]

        assert transactional is not None
        assert transactional.end_offset == MAX_OFFSET
        assert entries == list(view.of_epoch(0)) == list(view.from_offset(0)) == [transactional]
        assert view.highest_end_offset(0) == MAX_OFFSET


def test_view_when_asked_for_the_unfinished_then_leaves_out_the_finished() -> None:
    steps = step(segment_metadata(1, 0, 10), FINISHED), step(segment_metadata(2, 10, 20), STARTED)

    with view_of(claim(), *steps) as view:
        assert [entry.state for entry in view.from_offset(0)] == [FINISHED, STARTED]
        assert [entry.state for entry in view.from_offset(0, unfinished=True)] == [STARTED]


def test_lineage_when_a_segment_ends_at_the_offset_then_only_what_is_above() -> None:
    """Because of the longer segment, the search begins where it can find the shorter one."""
    segments = segment_metadata(1, 0, 10), segment_metadata(2, 10, 30)

    with view_of(*(step(segment, FINISHED) for segment in segments)) as view:
        found = [part.start_offset for part, _ in view.of_lineage(Lineage.of((0, 0)), 10)]

    assert found == [10]
