"""A fold of the compacted log equals the live one, if owners followed their rules."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.events.offload_segment import offload_segments
from rlmm.events.pause import paused_tasks
from rlmm.events.policy import topic_policies, topic_policy_position
from rlmm.events.registration import registrations
from rlmm.events.secret import cluster_secret
from rlmm.topic.memory import MemoryLog
from rsm.segment.metadata import SegmentState
from tests.example_counts import examples
from tests.folding import contents, fold_contents, fold_log, folded
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import ORDERS
from tests.metadata_worlds import SEGMENTS, World, worlds


def prefix(log: MemoryLog, length: int) -> MemoryLog:
    """Return the log as it was when it had this number of records."""
    clock = ManualClock()
    shorter = MemoryLog(clock)
    for record in log.records(0)[:length]:
        clock.now_ms = record.append_time_ms
        shorter.append(0, record.key, record.value)
    return shorter


def compacted(log: MemoryLog, data: st.DataObject) -> MemoryLog:
    """Return the same log after some runs of the cleaner."""
    shorter = prefix(log, log.end_offset(0))
    for _ in range(data.draw(st.integers(1, 3))):
        upto_offset = data.draw(st.integers(0, log.end_offset(0)))
        shorter.compact(0, upto_offset, drop_tombstones=data.draw(st.booleans()))
    return shorter


def answers(cache: MetadataCache) -> object:
    """Return all answers that a process acts on."""
    return (
        cache.segments(ORDERS),
        cache.segments(ORDERS, leader_epoch=1),
        cache.partition_state(ORDERS),
        offload_segments(cache, ORDERS),
        cache.earliest_log_offset(ORDERS),
        cache.size_bytes(ORDERS),
        cache.newer_record(ORDERS) is None,
        topic_policies(cache),
        topic_policy_position(cache, ORDERS.topic_id),
        paused_tasks(cache, ORDERS.topic_id),
        registrations(cache),
        cluster_secret(cache),
    )


@settings(max_examples=examples(3))
@given(worlds(), st.data())
def test_fold_when_any_prefixes_were_compacted_then_equals_the_live_one(
    world: World, data: st.DataObject
) -> None:
    """R11: with refused events, late ends of copies, zombie claims and tombstones in it."""
    shorter = compacted(world.log, data)

    assert fold_contents(shorter) == fold_contents(world.log)


@settings(max_examples=examples(3))
@given(worlds(), st.data())
def test_fold_when_the_log_ends_anywhere_then_compaction_changes_no_answer(
    world: World, data: st.DataObject
) -> None:
    """R11: even if an owner wrote only some tombstones, and compaction removed some of these."""
    log = prefix(world.log, data.draw(st.integers(0, world.log.end_offset(0))))

    assert answers(folded(compacted(log, data))) == answers(folded(log))


@settings(max_examples=examples(3))
@given(worlds(), st.data())
def test_segment_when_retired_then_never_lives_again(world: World, data: st.DataObject) -> None:
    """R11: whatever zombies write afterwards, and whatever compaction removed."""
    cache = folded(compacted(world.log, data))

    living = {record.metadata.segment_id for record in cache.segments(ORDERS)}

    assert not living & {SEGMENTS[number].segment_id for number in world.retired}


@settings(max_examples=examples(2))
@given(worlds(), st.integers(1, 50))
def test_fold_when_batches_differ_then_gives_the_same(world: World, max_records: int) -> None:
    """Scenario 30: one process folds a batch at once, another one record by record."""
    one_by_one, batched = MemoryStore(), MemoryStore()
    fold_log(world.log, one_by_one, max_records=1)

    fold_log(world.log, batched, max_records=max_records)

    assert contents(batched) == contents(one_by_one)


@settings(max_examples=examples(1 / 4))
@given(worlds())
def test_fold_when_into_rocksdb_then_gives_what_memory_gives(world: World) -> None:
    """Scenario 36: the same answers from either store."""
    memory = MemoryStore()
    fold_log(world.log, memory)
    with tempfile.TemporaryDirectory() as directory:
        store = RocksDbStore(Path(directory) / "cache")

        fold_log(world.log, store)

        found = contents(store)
        listed = MetadataCache(store).segments(ORDERS, states=list(SegmentState))
        answered = answers(MetadataCache(store))
        store.close()
    assert found == contents(memory)
    assert answered == answers(MetadataCache(memory))
    assert listed == MetadataCache(memory).segments(ORDERS, states=list(SegmentState))
