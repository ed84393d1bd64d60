"""Answers over epochs and lineages equal those of a search through everything that is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.event import Event
from rsm.segment.coverage import stored_ranges
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange
from tests.example_counts import examples
from tests.folding import folded, log_of
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    STARTED,
    claim,
    log_start,
    segment_metadata,
    step,
    writer,
)

END_OFFSET = 40
OFFSETS = range(END_OFFSET)
EPOCHS = range(5)
LIFE = (STARTED, FINISHED, DELETE_STARTED, DELETE_FINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The content of a cache: the log's lineage and start, and the last state of each segment."""

    cache: MetadataCache
    lineage: Lineage
    log_start: int
    segments: tuple[RemoteLogSegmentMetadata, ...]

    @property
    def finished(self) -> list[RemoteLogSegmentMetadata]:
        return [segment for segment in self.segments if segment.state is FINISHED]


@st.composite
def lineages(draw: st.DrawFn) -> Lineage:
    epochs = sorted(draw(st.sets(st.sampled_from(EPOCHS), min_size=1, max_size=4)))
    starts = sorted(draw(st.lists(st.sampled_from(OFFSETS), min_size=len(epochs) - 1, max_size=9)))
    return Lineage.of(*zip(epochs, [0, *starts], strict=False))


@st.composite
def stored(draw: st.DrawFn) -> Stored:
    """Draw segments of the log's own lineage and of one that was cut off, finished or not."""
    own, other = draw(lineages()), draw(lineages())
    leader = writer(own.entries[-1].epoch)
    events: list[Event] = [claim(leader, lineage=own)]
    if start := draw(st.sampled_from([0, 0, 7, 25])):
        events.append(log_start(start, by=leader))
    segments = []
    for number in range(draw(st.integers(0, 9))):
        base = draw(st.integers(0, END_OFFSET - 2))
        offsets = OffsetRange(start_offset=base, end_offset=draw(st.integers(base + 1, END_OFFSET)))
        metadata = replace(
            segment_metadata(number, base, offsets.end_offset),
            segment_leader_epochs=draw(st.sampled_from([own, own, other])).within(offsets),
            segment_size_bytes=draw(st.integers(1, 9)),
            has_transaction_index=draw(st.booleans()),
        )
        last = draw(st.sampled_from([FINISHED, FINISHED, FINISHED, *LIFE]))
        for state in LIFE[: last.value]:
            expected = FINISHED if state is DELETE_STARTED else None
            events.append(step(metadata, state, by=leader, expected_state=expected))
        segments.append(replace(metadata, state=last))
    return Stored(
        cache=folded(log_of(*events)), lineage=own, log_start=start, segments=tuple(segments)
    )


def part(segment: RemoteLogSegmentMetadata, epoch: int) -> OffsetRange | None:
    """Return the part of a segment that an epoch wrote."""
    start = segment.segment_leader_epochs.start_offset(epoch)
    if start is None:
        return None
    end = segment.segment_leader_epochs.end_offset(epoch)
    return OffsetRange(start_offset=start, end_offset=end or segment.offsets.end_offset)


@settings(max_examples=examples(5))
@given(stored())
def test_earliest_offset_when_asked_then_is_the_first_readable_one(found: Stored) -> None:
    """Scenario 8: segments outside of the lineage never answer."""
    ranges = stored_ranges(found.lineage, found.finished)
    offsets = [
        max(each.offsets.start_offset, found.log_start)
        for each in ranges
        if each.offsets.end_offset > found.log_start
    ]

    assert found.cache.earliest_log_offset(ORDERS) == min(offsets, default=None)


@settings(max_examples=examples(3))
@given(stored())
def test_sizes_when_asked_then_count_each_segment_as_often_as_said(found: Stored) -> None:
    """KIP-852: whole in each of its epochs; in the lineage once."""
    in_lineage = stored_ranges(found.lineage, found.finished)

    assert found.cache.size_bytes(ORDERS) == sum(
        each.metadata.segment_size_bytes for each in in_lineage
    )
    assert [found.cache.size_bytes(ORDERS, epoch) for epoch in EPOCHS] == [
        sum(s.segment_size_bytes for s in found.finished if part(s, epoch)) for epoch in EPOCHS
    ]


@settings(max_examples=examples(3))
@given(stored(), st.sampled_from(EPOCHS), st.sampled_from(OFFSETS))
def test_listing_when_by_epoch_then_holds_all_but_deleted_ones(
    found: Stored, epoch: int, from_offset: int
) -> None:
    """KIP-405: unfinished segments too, so that they can be cleaned up."""
    listed = found.cache.segments(ORDERS, leader_epoch=epoch, from_offset=from_offset)

    expected = [
        s
        for s in found.segments
        if part(s, epoch) and s.offsets.end_offset > from_offset and s.state is not DELETE_FINISHED
    ]
    assert [record.metadata.segment_id for record in listed] == [
        s.segment_id
        for s in sorted(expected, key=lambda s: (s.offsets.start_offset, s.segment_id.id))
    ]


@settings(max_examples=examples(2))
@given(stored(), st.sets(st.sampled_from(SegmentState)), st.sampled_from(OFFSETS))
def test_listing_when_by_state_then_is_the_whole_one_less_the_others(
    found: Stored, states: set[SegmentState], from_offset: int
) -> None:
    """Unfinished segments are found without reading finished ones."""
    everything = found.cache.segments(ORDERS, states=LIFE, from_offset=from_offset)

    listed = found.cache.segments(ORDERS, states=tuple(states), from_offset=from_offset)

    assert listed == [record for record in everything if record.metadata.state in states]


@settings(max_examples=examples(5))
@given(stored(), st.sampled_from(EPOCHS))
def test_next_transaction_index_when_asked_then_is_where_repeated_lookups_end(
    found: Stored, epoch: int
) -> None:
    """KIP-1058: a hole and the epoch's end end the search."""

    def walk(offset: int) -> RemoteLogSegmentMetadata | None:
        while segment := found.cache.finished_segment(ORDERS, offset, leader_epoch=epoch):
            written = part(segment, epoch)
            if segment.has_transaction_index or written is None:
                return segment
            offset = written.end_offset
        return None

    answers = [found.cache.next_transactional_segment(ORDERS, epoch, o) for o in OFFSETS]

    assert answers == [walk(offset) for offset in OFFSETS]
