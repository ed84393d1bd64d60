"""Any sequence of events gives the same state as a model of KIP-405 that keeps it in dicts."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import OrderedStore
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.codec import encode
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.event import Event
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.segment import SegmentEvent
from rlmm.fold import fold, parse_record
from rlmm.positions import TopicRecord
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, Writer
from tests.example_counts import examples
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    DELETED,
    DELETING,
    FINISHED,
    MARKED,
    ORDERS,
    STARTED,
    claim,
    partition_delete,
    segment_metadata,
    step,
    writer,
)

PARTITIONS = [ORDERS, replace(ORDERS, partition=1)]
WRITERS = [writer(0), writer(1), writer(1, incarnation=0xB2)]
FOLLOWING = {
    None: {STARTED, FINISHED},
    STARTED: {FINISHED, DELETE_STARTED},
    FINISHED: {DELETE_STARTED},
    DELETE_STARTED: {DELETE_FINISHED},
    DELETE_FINISHED: set(),
}
EPOCHS, OFFSETS = range(3), range(0, 60, 5)


@dataclass
class Model:
    """KIP-405's transitions, also FINISHED from nothing, and the fences of `rlm`."""

    segments: dict[RemoteLogSegmentId, RemoteLogSegmentMetadata] = field(default_factory=dict)
    owners: dict[TopicIdPartition, Writer] = field(default_factory=dict)
    deletions: dict[TopicIdPartition, int] = field(default_factory=dict)

    def apply(self, event: Event) -> bool:
        match event:
            case SegmentEvent():
                return self._segment(event)
            case LeadershipClaimed():
                return self._claim(event)
            case RemotePartitionDeleteMetadata():
                return self._delete(event)
        raise AssertionError(event)

    def _segment(self, event: SegmentEvent) -> bool:
        metadata, tip = event.metadata, event.metadata.topic_id_partition
        before = self.segments.get(metadata.segment_id)
        current = before.state if before else None
        allowed = metadata.state in FOLLOWING[current]
        if current is None and tip in self.deletions:
            allowed = False
        if metadata.state is DELETE_STARTED:
            fenced = self.owners.get(tip) != metadata.writer
            allowed = allowed and not fenced and event.expected_state is current
        if allowed:
            self.segments[metadata.segment_id] = metadata
        return allowed

    def _claim(self, event: LeadershipClaimed) -> bool:
        tip, owner = event.topic_id_partition, self.owners.get(event.topic_id_partition)
        newer = owner is None or event.writer.leader_epoch >= owner.leader_epoch
        allowed = newer and self.deletions.get(tip) != DELETED.value
        if allowed:
            self.owners[tip] = event.writer
        return allowed

    def _delete(self, event: RemotePartitionDeleteMetadata) -> bool:
        tip = event.topic_id_partition
        allowed = event.state.value == self.deletions.get(tip, 0) + 1
        if allowed:
            self.deletions[tip] = event.state.value
            if event.state is DELETED:
                self.owners.pop(tip, None)
        return allowed

    def listed(self, tip: TopicIdPartition) -> list[RemoteLogSegmentMetadata]:
        found = [
            s
            for s in self.segments.values()
            if s.topic_id_partition == tip and s.state is not DELETE_FINISHED
        ]
        return sorted(found, key=lambda s: (s.offsets.start_offset, s.segment_id.id))

    def holder(self, tip: TopicIdPartition, epoch: int, offset: int) -> object:
        found = []
        for segment in self.listed(tip):
            lineage = segment.segment_leader_epochs
            start, end = lineage.start_offset(epoch), lineage.end_offset(epoch)
            end = segment.offsets.end_offset if end is None else end
            if segment.state is FINISHED and start is not None and start <= offset < end:
                found.append((end, start, segment.segment_id.id))
        return max(found)[2] if found else None


@st.composite
def events(draw: st.DrawFn, tip: TopicIdPartition) -> list[Event]:
    """Draw events that leaders, zombies and repair jobs might write, some of them twice."""
    segments = [
        segment_metadata(1 + 10 * tip.partition, 0, 30, epochs=((0, 0), (1, 20)), partition=tip),
        segment_metadata(2 + 10 * tip.partition, 10, 40, epochs=((0, 10), (2, 20)), partition=tip),
        segment_metadata(3 + 10 * tip.partition, 0, 55, epochs=((0, 0), (1, 20)), partition=tip),
    ]
    steps = st.builds(
        step,
        st.sampled_from(segments),
        st.sampled_from([STARTED, FINISHED, FINISHED, DELETE_STARTED, DELETE_FINISHED]),
        by=st.sampled_from(WRITERS),
        expected_state=st.sampled_from([None, STARTED, FINISHED, FINISHED]),
    )
    others = st.one_of(
        st.builds(claim, st.sampled_from(WRITERS), partition=st.just(tip)),
        st.builds(
            partition_delete, st.sampled_from([MARKED, DELETING, DELETED]), partition=st.just(tip)
        ),
    )
    written: list[Event] = draw(st.lists(st.one_of(steps, steps, steps, others), max_size=25))
    for _ in range(draw(st.integers(0, 3)) if written else 0):
        again = draw(st.sampled_from(written))
        written.insert(draw(st.integers(written.index(again), len(written))), again)
    return written


@st.composite
def interleavings(draw: st.DrawFn) -> list[tuple[int, Event]]:
    """Draw the events of two partitions, interleaved in any order."""
    waiting = [draw(events(tip)) for tip in PARTITIONS]
    order = draw(st.permutations([0] * len(waiting[0]) + [1] * len(waiting[1])))
    iterators = [iter(each) for each in waiting]
    return [(number, next(iterators[number])) for number in order]


def fold_into(store: OrderedStore, written: list[tuple[int, Event]]) -> list[bool]:
    """Fold in small batches; return whether each event was accepted."""
    cache = MetadataCache(store)
    accepted = []
    for begin in range(0, len(written), 4):
        overlay = cache.overlay()
        for offset, (number, event) in enumerate(written[begin : begin + 4], start=begin):
            record = encode(event)
            read = TopicRecord(number, offset, 1_000, record.key, record.value)
            accepted.append(fold(overlay, parse_record(record.key, record.value), read) is None)
        overlay.commit({})
    return accepted


def check(store: OrderedStore, written: list[tuple[int, Event]]) -> None:
    model, cache = Model(), MetadataCache(store)
    expected = [model.apply(event) for _, event in written]

    assert fold_into(store, written) == expected
    for tip in PARTITIONS:
        assert [r.metadata for r in cache.segments(tip)] == model.listed(tip)
        state = cache.partition_state(tip)
        assert state.owner == model.owners.get(tip)
        assert (state.deletion.value if state.deletion else None) == model.deletions.get(tip)
        for epoch in EPOCHS:
            found = [cache.finished_segment(tip, offset, leader_epoch=epoch) for offset in OFFSETS]
            assert [f.segment_id.id if f else None for f in found] == [
                model.holder(tip, epoch, offset) for offset in OFFSETS
            ]


@settings(max_examples=examples(5))
@given(interleavings())
def test_fold_when_events_come_in_any_order_then_is_as_the_model(
    written: list[tuple[int, Event]],
) -> None:
    """Scenarios 29–32: duplicates, stale epochs, skipped and backward steps, two partitions."""
    check(MemoryStore(), written)


@settings(max_examples=examples(1 / 4))
@given(interleavings())
def test_fold_when_into_rocksdb_then_is_as_the_model(written: list[tuple[int, Event]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = RocksDbStore(Path(directory) / "cache")
        check(store, written)
        store.close()
