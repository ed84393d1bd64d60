"""Which partitions' metadata has changed since an earlier query."""

from __future__ import annotations

from uuid import UUID

from rlmm.cache.partition_changes import PartitionChanges
from rlmm.record_keys import partition_subject
from rlmm.spi import PartitionKey
from rsm.segment.ids import TopicIdPartition

ID = UUID(int=7)


def _subject(partition: int) -> bytes:
    return partition_subject(TopicIdPartition(topic_id=ID, topic="orders", partition=partition))


def _partition_key(partition: int) -> PartitionKey:
    return PartitionKey(ID, partition)


def test_changes_when_asked_again_then_are_those_since() -> None:
    changes = PartitionChanges()
    changes.changed([_subject(1), _subject(2)])
    first = changes.since(0)
    changes.changed([_subject(2), _subject(3)])
    second = changes.since(first.count)

    assert first.partition_keys == frozenset({_partition_key(1), _partition_key(2)})
    assert second.partition_keys == frozenset({_partition_key(2), _partition_key(3)})
    assert changes.since(second.count).partition_keys == frozenset()


def test_changes_when_more_than_are_remembered_then_it_may_be_any() -> None:
    changes = PartitionChanges(remembered_count=2)
    changes.changed(map(_subject, range(3)))

    assert changes.since(0).partition_keys is None
    assert changes.since(1).partition_keys == frozenset({_partition_key(1), _partition_key(2)})


def test_changes_when_all_was_dropped_then_it_may_be_any() -> None:
    changes = PartitionChanges()
    seen = changes.since(0)
    changes.all_changed()
    changes.changed([_subject(1)])

    dropped = changes.since(seen.count)

    assert dropped.partition_keys is None
    assert changes.since(dropped.count).partition_keys == frozenset()
