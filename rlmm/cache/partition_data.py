"""Finds the user partitions in the cache, and removes those of dropped metadata partitions.

Except in `checkpoint` and `cluster`, each key begins with a partition subject, from which the
metadata partition follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rlmm.cache.keys import NEWER_PREFIX, UNREADABLE_PREFIX, after, position_key
from rlmm.cache.ordered_store import OrderedStore, StoreReader, Table
from rlmm.cache.values import newer_record_from_bytes
from rlmm.partitioner import subject_partition
from rlmm.record_keys import PARTITION_SUBJECT_BYTES, subject_partition_number

_BY_SUBJECT = tuple(table for table in Table if table not in (Table.CHECKPOINT, Table.CLUSTER))
_LAST_KEY = b"\xff" * (PARTITION_SUBJECT_BYTES + 1)


def drop_partitions(
    store: OrderedStore, metadata_partitions: Collection[int], partition_count: int
) -> None:
    """Remove the positions of metadata partitions and all rows that were folded from them.

    The removal is atomic, so data always has its position. It deletes one range for each user
    partition and table, regardless of the number of segments. Memory: these ranges. The cluster
    partition is never dropped. Of the rows in `cluster`, only the notes of unread records come from
    other partitions.
    """
    batch = store.batch()
    for table in _BY_SUBJECT:
        with store.read(table) as reader:
            for subject in _subjects(reader, table):
                if subject_partition(subject, partition_count) in metadata_partitions:
                    batch.delete_range(table, subject, after(subject))
    with store.read(Table.CLUSTER) as reader:
        for prefix in (NEWER_PREFIX, UNREADABLE_PREFIX):
            for key, value in reader.ascending(Table.CLUSTER, prefix, after(prefix)):
                if newer_record_from_bytes(value).position.partition in metadata_partitions:
                    batch.delete(Table.CLUSTER, key)
    for partition in metadata_partitions:
        batch.delete(Table.CHECKPOINT, position_key(partition))
    store.write(batch)


def partition_numbers(store: OrderedStore, topic_id: bytes) -> tuple[int, ...]:
    """Return the known partitions of a topic id, ascending, with a few seeks per partition."""
    numbers: set[int] = set()
    for table in _BY_SUBJECT:
        with store.read(table) as reader:
            numbers.update(map(subject_partition_number, _subjects(reader, table, topic_id)))
    return tuple(sorted(numbers))


def _subjects(reader: StoreReader, table: Table, topic_id: bytes = b"") -> Iterator[bytes]:
    """Yield the user partitions with rows in a table, with one seek each.

    If `topic_id` is not empty, yields only the partitions of that topic.
    """
    start, end = topic_id, after(topic_id) if topic_id else _LAST_KEY
    while (found := next(reader.ascending(table, start, end), None)) is not None:
        subject = found[0][:PARTITION_SUBJECT_BYTES]
        yield subject
        start = after(subject)
