"""What the cache holds of single metadata partitions, so that it can be dropped.

Every row but the cluster's begins with a partition subject, and that tells the metadata partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rlmm.cache.keys import NEWER_PREFIX, after, position_key
from rlmm.cache.ordered_store import OrderedStore, StoreReader, Table
from rlmm.cache.values import newer_record_from_bytes
from rlmm.partitioner import subject_partition
from rlmm.record_keys import PARTITION_SUBJECT_BYTES

_BY_SUBJECT = tuple(table for table in Table if table not in (Table.CHECKPOINT, Table.CLUSTER))
_LAST_KEY = b"\xff" * (PARTITION_SUBJECT_BYTES + 1)


def drop_partitions(
    store: OrderedStore, metadata_partitions: Collection[int], partition_count: int
) -> None:
    """Forget all that was folded from some metadata partitions, and that they were ever read.

    Atomic: there is never data without its position. One range is written for each user partition
    and table, however many segments it has; memory is those ranges. What is of the cluster as a
    whole is folded from the cluster partition alone, which is never dropped.
    """
    batch = store.batch()
    for table in _BY_SUBJECT:
        with store.read(table) as reader:
            for subject in _subjects(reader, table):
                if subject_partition(subject, partition_count) in metadata_partitions:
                    batch.delete_range(table, subject, after(subject))
    with store.read(Table.CLUSTER) as reader:
        rows = reader.ascending(Table.CLUSTER, NEWER_PREFIX, after(NEWER_PREFIX))
        for key, value in rows:
            if newer_record_from_bytes(value).position.partition in metadata_partitions:
                batch.delete(Table.CLUSTER, key)
    for partition in metadata_partitions:
        batch.delete(Table.CHECKPOINT, position_key(partition))
    store.write(batch)


def _subjects(reader: StoreReader, table: Table) -> Iterator[bytes]:
    """The user partitions that a table has rows of; each costs one seek."""
    start = b""
    while (found := next(reader.ascending(table, start, _LAST_KEY), None)) is not None:
        subject = found[0][:PARTITION_SUBJECT_BYTES]
        yield subject
        start = after(subject)
