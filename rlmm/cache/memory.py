"""Implements OrderedStore in memory, for tests and for programs that read the metadata topic once.

An open view locks the tables, so writers wait until it is closed. Memory: all rows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

from rlmm.cache.ordered_store import (
    OrderedStore,
    StoreBatch,
    StoreReader,
    StoreSize,
    Table,
)

_SORT_AT_ONCE_COUNT = 64


class _SortedTable:
    """Represents a dict with its keys sorted; adds the keys of a large batch with one sort."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.keys: list[bytes] = []

    def remove(self, start: bytes, end: bytes) -> None:
        first, last = bisect_left(self.keys, start), bisect_left(self.keys, end)
        for key in self.keys[first:last]:
            del self.values[key]
        del self.keys[first:last]

    def update(self, changes: dict[bytes, bytes | None]) -> None:
        added = []
        for key, value in changes.items():
            known = key in self.values
            if value is not None:
                self.values[key] = value
                if not known:
                    added.append(key)
            elif known:
                del self.values[key]
                del self.keys[bisect_left(self.keys, key)]
        if len(added) < _SORT_AT_ONCE_COUNT:
            for key in added:
                insort(self.keys, key)
        else:
            self.keys.extend(added)
            self.keys.sort()


class _MemoryBatch(StoreBatch):
    def __init__(self) -> None:
        self.cleared = False
        self.changes: dict[Table, dict[bytes, bytes | None]] = {}
        self.ranges: list[tuple[Table, bytes, bytes]] = []

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self.changes.setdefault(table, {})[key] = value

    def delete(self, table: Table, key: bytes) -> None:
        self.changes.setdefault(table, {})[key] = None

    def delete_range(self, table: Table, start: bytes, end: bytes) -> None:
        self.ranges.append((table, start, end))

    def clear_tables(self) -> None:
        self.cleared = True
        self.changes.clear()


class _MemoryReader(StoreReader):
    def __init__(self, tables: dict[Table, _SortedTable]) -> None:
        self._tables = tables

    def get(self, table: Table, key: bytes) -> bytes | None:
        return self._tables[table].values.get(key)

    def ascending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        sorted_table = self._tables[table]
        for index in range(*self._bounds(sorted_table, start, end)):
            key = sorted_table.keys[index]
            yield key, sorted_table.values[key]

    def descending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        sorted_table = self._tables[table]
        for index in reversed(range(*self._bounds(sorted_table, start, end))):
            key = sorted_table.keys[index]
            yield key, sorted_table.values[key]

    @staticmethod
    def _bounds(table: _SortedTable, start: bytes, end: bytes) -> tuple[int, int]:
        return bisect_left(table.keys, start), bisect_left(table.keys, end)


class MemoryStore(OrderedStore):
    """Represents the tables in memory. `close` keeps the data, so that tests can inspect it."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._tables = {table: _SortedTable() for table in Table}

    def get(self, table: Table, key: bytes) -> bytes | None:
        return self._tables[table].values.get(key)

    def batch(self) -> StoreBatch:
        return _MemoryBatch()

    def write(self, batch: StoreBatch) -> None:
        assert isinstance(batch, _MemoryBatch), "the batch is of another OrderedStore"
        with self._lock:
            if batch.cleared:
                self._tables = {table: _SortedTable() for table in Table}
            for table, start, end in batch.ranges:
                self._tables[table].remove(start, end)
            for table, changes in batch.changes.items():
                self._tables[table].update(changes)

    @contextmanager
    def read(self, *tables: Table) -> Iterator[StoreReader]:
        with self._lock:
            yield _MemoryReader({table: self._tables[table] for table in tables})

    def size(self) -> StoreSize:
        counts = {table: len(each.keys) for table, each in self._tables.items()}
        return StoreSize(entry_counts=counts)

    def set_bulk_mode(self, *, enabled: bool) -> None:
        """Do nothing, because all tables are always sorted."""

    def failure(self) -> str:
        return ""

    def reopen(self, before_restart: Callable[[], None] = lambda: None) -> None:
        """Do nothing, because a database in memory cannot fail."""

    def set_aside(self, topic_id: str) -> str:
        with self._lock:
            self._tables = {table: _SortedTable() for table in Table}
        return ""

    def close(self) -> None:
        """Do nothing, because there is nothing to release."""
