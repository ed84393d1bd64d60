"""The cache's rows of single user partitions: those of a topic, or of a dropped metadata partition.

Each row except those of `checkpoint` and `cluster` begins with a partition subject, which gives the
metadata partition.
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
    """Remove the positions of some metadata partitions and all rows that were folded from them.

    It is atomic, so data never lacks its position. It writes one range for each user partition and
    table, regardless of the number of segments. Memory: these ranges. Of the rows in `cluster`,
    only notes of unread records come from partitions other than the cluster partition, which is
    never dropped.
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
    """Return the known partitions of a topic id, ascending; it needs a few seeks for each."""
    numbers: set[int] = set()
    for table in _BY_SUBJECT:
        with store.read(table) as reader:
            numbers.update(map(subject_partition_number, _subjects(reader, table, topic_id)))
    return tuple(sorted(numbers))


def _subjects(reader: StoreReader, table: Table, topic_id: bytes = b"") -> Iterator[bytes]:
    """Yield the user partitions, of one topic id or all, with rows in a table; one seek each."""
    start, end = topic_id, after(topic_id) if topic_id else _LAST_KEY
    while (found := next(reader.ascending(table, start, end), None)) is not None:
        subject = found[0][:PARTITION_SUBJECT_BYTES]
        yield subject
        start = after(subject)
