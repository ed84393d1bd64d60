from __future__ import annotations

import pytest

from rlmm.cache.keys import IDENTITY
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import Table
from rlmm.positions import TopicIdentity
from rlmm.proto import cache_pb2 as pb

TOPIC = TopicIdentity(cluster_id="cluster", topic_id="topic", partition_count=3)


def stored(change: str) -> MetadataCache:
    """Return a cache of this topic whose identity has one number of another version."""
    store = MemoryStore()
    MetadataCache(store).reset(TOPIC)
    value = store.get(Table.CHECKPOINT, IDENTITY)
    assert value is not None
    message = pb.CacheIdentity.FromString(value)
    if change:
        setattr(message, change, getattr(message, change) + 1)
    batch = store.batch()
    batch.put(Table.CHECKPOINT, IDENTITY, message.SerializeToString())
    store.write(batch)
    return MetadataCache(store)


def test_cache_when_of_this_version_then_shows_its_topic() -> None:
    assert stored("").identity() == TOPIC


@pytest.mark.parametrize("change", ["schema_version", "fold_version"])
def test_cache_when_of_another_version_then_belongs_to_no_topic(change: str) -> None:
    """Scenario 102: the cache is rebuilt after an upgrade, and after a downgrade."""
    assert stored(change).identity() is None
