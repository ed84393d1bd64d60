"""Defines OrderedStore: a local database of byte tables in key order, with atomic batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum


class Table(Enum):
    """Lists the tables; each value is a name on disk. rlmm/cache/keys.py describes the layouts."""

    CHECKPOINT = "checkpoint"
    SEGMENTS = "segments"
    SEGMENT_OFFSETS = "segment_offsets"
    UNFINISHED_BY_OFFSET = "unfinished_by_offset"
    BOUNDS = "bounds"
    PARTITIONS = "partitions"
    RECORD_KEYS = "record_keys"
    CLUSTER = "cluster"

    # Each access hashes a table. Enum's own __hash__ is slower, because it hashes the name.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSize:
    """Represents a database's disk and memory use; `entry_counts` may be estimates."""

    disk_bytes: int = 0
    block_cache_bytes: int = 0
    write_buffer_bytes: int = 0
    entry_counts: Mapping[Table, int] = field(default_factory=dict)


class StoreReader(ABC):
    """Represents a consistent view of tables, until its context ends. Not thread-safe."""

    @abstractmethod
    def get(self, table: Table, key: bytes) -> bytes | None:
        """Return the value of a key; None if the key does not exist."""

    @abstractmethod
    def ascending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in [start, end), smallest key first."""

    @abstractmethod
    def descending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in [start, end), greatest key first."""


class StoreBatch(ABC):
    """Collects changes to write together; the last change of a key wins. Not thread-safe."""

    @abstractmethod
    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """Set a key's value."""

    @abstractmethod
    def delete(self, table: Table, key: bytes) -> None:
        """Remove a key; do nothing if it does not exist."""

    @abstractmethod
    def delete_range(self, table: Table, start: bytes, end: bytes) -> None:
        """Remove the keys in [start, end) that were written before this batch.

        This batch must not put keys in that range.
        """

    @abstractmethod
    def clear_tables(self) -> None:
        """Remove all keys of all tables, including those put earlier in this batch."""


class OrderedStore(ABC):
    """Represents a local database. Thread-safe; applies batches one after another.

    Raises CorruptError if stored data is damaged, and RetriableError if the disk fails.
    """

    @abstractmethod
    def get(self, table: Table, key: bytes) -> bytes | None:
        """Return the current value of a key; None if the key does not exist."""

    @abstractmethod
    def batch(self) -> StoreBatch:
        """Return an empty batch."""

    @abstractmethod
    def write(self, batch: StoreBatch) -> None:
        """Apply a batch of this database completely or not at all, even if the process crashes."""

    @abstractmethod
    def read(self, *tables: Table) -> AbstractContextManager[StoreReader]:
        """Return a consistent view of these tables. Close it soon, because writers may wait."""

    @abstractmethod
    def size(self) -> StoreSize:
        """Return the database's size; cheap enough for each scrape.

        The values may be 0 while the database is being opened again.
        """

    @abstractmethod
    def set_bulk_mode(self, *, enabled: bool) -> None:
        """Optimize for many writes and few reads if `enabled`; otherwise for reads, the default.

        This changes cost and speed, never results. `reopen` restores the default.
        """

    @abstractmethod
    def failure(self) -> str:
        """Return why the database cannot be used until `reopen` succeeds; "" if it can be used.

        Any call may detect the failure, including a read that finds damage.
        """

    @abstractmethod
    def reopen(self, before_restart: Callable[[], None] = lambda: None) -> None:
        """Close the database and open it again with all written data; this ends a failure.

        Meanwhile, reads raise RetriableError. If the database is damaged, calls `before_restart`
        and then replaces the database with an empty one.
        """

    @abstractmethod
    def set_aside(self, topic_id: str) -> str:
        """Replace the database with an empty one. Returns the old data's path; "" if not kept.

        Only the data of the last call is kept. Its path ends with `topic_id` in URL-safe base64.
        `topic_id` is 22 characters of standard or URL-safe base64.
        """

    @abstractmethod
    def close(self) -> None:
        """Release all resources; idempotent. Call no other method afterwards."""
