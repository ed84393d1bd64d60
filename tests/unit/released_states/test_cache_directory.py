"""Every later version continues or rebuilds the cache of a version, and never misreads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlmm.cache.keys import IDENTITY
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import OrderedStore, Table
from rlmm.cache.rocksdb_copy import copy_cache
from rlmm.cache.values import SCHEMA_VERSION
from rlmm.codec import FOLD_VERSION
from rlmm.proto import cache_pb2 as pb
from rlmm.topic.memory import MemoryLog
from tests.released_states.directories import StateDirectory
from tests.released_states.reopened import following, open_cache, topic_of, wrong_answers
from tests.released_states.topic_records import read_records, without_read

Opener = Callable[[StateDirectory, Path], OrderedStore]


def _in_place(state: StateDirectory, directory: Path) -> OrderedStore:
    """Open the directory like a manager that is upgraded."""
    return open_cache(state, directory)


def _copied(state: StateDirectory, directory: Path) -> OrderedStore:
    """Copy the directory like a command or a job that reads a running manager's cache."""
    scratch, target = directory / "scratch", MemoryStore()
    scratch.mkdir(parents=True)
    copy_cache(state.cache, target, scratch)
    return target


def _has_this_schema(state: StateDirectory) -> bool:
    cache = state.expected()["cache"]
    return (cache["schema_version"], cache["fold_version"]) == (SCHEMA_VERSION, FOLD_VERSION)


def _topic(state: StateDirectory, store: OrderedStore) -> MemoryLog:
    """Return the topic for a cache.

    If the cache may be continued, the topic lacks the records that the cache has, so that no
    rebuild could answer. If the cache must be rebuilt, the topic has all records.
    """
    records = read_records(state.metadata_topic)
    cache = MetadataCache(store)
    if cache.identity() is not None:
        records = without_read(records, dict(cache.positions()))
    return topic_of(state, records)


@pytest.mark.parametrize("opened", [_in_place, _copied])
def test_cache_when_a_released_version_left_it_then_continued_or_rebuilt_to_its_answers(
    state: StateDirectory, tmp_path: Path, opened: Opener
) -> None:
    """Scenario 102: a cache of this schema is continued; others are rebuilt."""
    store = opened(state, tmp_path / "cache")
    is_continued = MetadataCache(store).identity() is not None

    with following(_topic(state, store), store) as metadata:
        assert wrong_answers(state.expected()["metadata"], metadata) == []
    assert is_continued == _has_this_schema(state)


@pytest.mark.parametrize("schema_step", [-1, 1])
def test_cache_when_its_schema_is_another_then_nothing_of_it_is_believed(
    state: StateDirectory, tmp_path: Path, schema_step: int
) -> None:
    """Scenario 102: for a downgrade, and for an upgrade that changes a table."""
    store = open_cache(state, tmp_path / "cache")
    topic = topic_of(state, read_records(state.metadata_topic))
    _pretend_schema(store, topic, SCHEMA_VERSION + schema_step)

    with following(topic, store) as metadata:
        assert wrong_answers(state.expected()["metadata"], metadata) == []


def _pretend_schema(store: OrderedStore, topic: MemoryLog, schema_version: int) -> None:
    """Give the cache another schema version, and reverse the value of each row."""
    identity = topic.identity
    batch = store.batch()
    with store.read(*Table) as reader:
        for table in Table:
            for key, value in list(reader.ascending(table, b"", b"\xff" * 64)):
                batch.put(table, key, value[::-1])
    marked = pb.CacheIdentity(
        schema_version=schema_version,
        cluster_id=identity.cluster_id,
        topic_id=identity.topic_id,
        partition_count=identity.partition_count,
        fold_version=FOLD_VERSION,
    )
    batch.put(Table.CHECKPOINT, IDENTITY, marked.SerializeToString())
    store.write(batch)
