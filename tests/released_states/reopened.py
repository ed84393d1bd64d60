"""Opens a kept state as a process of this version does: its topic, its cache, its store."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import OrderedStore
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.positions import TopicIdentity, TopicRecord
from rlmm.topic.memory import MemoryLog, MemoryTopic
from tests.log_dir_builder import ManualClock
from tests.released_states.directories import StateDirectory
from tests.released_states.metadata_answers import (
    Json,
    differences,
    expected_points,
    metadata_answers,
)
from tests.released_states.recorded_cluster import NO_POLLING
from tests.released_states.topic_records import log_of, read_records


def topic_of(state: StateDirectory, records: Sequence[TopicRecord]) -> MemoryLog:
    """Return the metadata topic of a state with these records."""
    found = state.expected()["metadata"]["topic"]
    identity = TopicIdentity(
        cluster_id=found["cluster_id"],
        topic_id=found["topic_id"],
        partition_count=found["partition_count"],
    )
    return log_of(identity, records, ManualClock())


@contextmanager
def following(
    log: MemoryLog, store: OrderedStore | None = None
) -> Iterator[TopicBasedRemoteLogMetadataManager]:
    """Run a manager that has caught up with a topic, a moment after the newest record."""
    partitions = range(log.identity.partition_count)
    newest_ms = max(each.append_time_ms for p in partitions for each in log.records(p))
    metadata = TopicBasedRemoteLogMetadataManager(
        MemoryTopic(log),
        MetadataCache(store or MemoryStore()),
        ManualClock(now_ms=newest_ms + 1),
        NO_POLLING,
    )
    try:
        readiness = metadata.wait_ready(60_000)
        assert readiness.is_ready, readiness.reason
        yield metadata
    finally:
        metadata.close()


@contextmanager
def folded_state(state: StateDirectory) -> Iterator[TopicBasedRemoteLogMetadataManager]:
    """Run a manager that has read the records of a state from the beginning."""
    with following(topic_of(state, read_records(state.metadata_topic))) as metadata:
        yield metadata


def open_cache(state: StateDirectory, directory: Path) -> RocksDbStore:
    """Copy the cache of a state to a new directory, and open it there."""
    shutil.copytree(state.cache, directory)
    store = RocksDbStore(directory)
    assert not store.failure(), store.failure()
    return store


def wrong_answers(expected: Json, metadata: TopicBasedRemoteLogMetadataManager) -> list[str]:
    """Return where a manager's answers differ from those of the version that wrote the state."""
    found = metadata_answers(metadata, expected_points(expected))
    return differences(expected, as_json(found))


def as_json(value: Json) -> Json:
    """Return a document after writing and reading it as JSON."""
    read: Json = json.loads(json.dumps(value))
    return read
