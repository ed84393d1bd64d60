"""OrderedStore: a local database with tables of bytes in key order, written in atomic batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum


class Table(Enum):
    """The tables; the value is the name on disk. rlmm/cache/keys.py lists their layouts."""

    CHECKPOINT = "checkpoint"
    SEGMENTS = "segments"
    SEGMENT_OFFSETS = "segment_offsets"
    UNFINISHED_BY_OFFSET = "unfinished_by_offset"
    BOUNDS = "bounds"
    PARTITIONS = "partitions"
    RECORD_KEYS = "record_keys"
    CLUSTER = "cluster"

    # Each access looks up a table, and Enum's own hash would hash the name.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSize:
    """The current disk and memory use of a database; `entry_counts` may be estimates."""

    disk_bytes: int = 0
    block_cache_bytes: int = 0
    write_buffer_bytes: int = 0
    entry_counts: Mapping[Table, int] = field(default_factory=dict)


class StoreReader(ABC):
    """One consistent view of some tables. For one thread; it ends with its context."""

    @abstractmethod
    def get(self, table: Table, key: bytes) -> bytes | None:
        """Return the value of a key."""

    @abstractmethod
    def ascending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in [start, end), smallest key first."""

    @abstractmethod
    def descending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in [start, end), greatest key first."""


class StoreBatch(ABC):
    """Changes to write together; the last change of a key wins. For one thread."""

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
    """A local database. All methods are thread-safe; it applies batches one after another.

    Raises CorruptError if stored data cannot be read, RetriableError if the disk fails.
    """

    @abstractmethod
    def get(self, table: Table, key: bytes) -> bytes | None:
        """Return the current value of a key."""

    @abstractmethod
    def batch(self) -> StoreBatch:
        """Return an empty batch."""

    @abstractmethod
    def write(self, batch: StoreBatch) -> None:
        """Apply a batch of this database: completely or not at all, even after a crash."""

    @abstractmethod
    def read(self, *tables: Table) -> AbstractContextManager[StoreReader]:
        """Return a consistent view of these tables. Writers may wait for it: close it soon."""

    @abstractmethod
    def size(self) -> StoreSize:
        """Return the database's size; zeros while it is closed. Cheap enough for each scrape."""

    @abstractmethod
    def set_bulk_mode(self, *, enabled: bool) -> None:
        """Optimize for many writes and few reads, or for the opposite, which is the default.

        This changes cost and speed, never results. `reopen` restores the default.
        """

    @abstractmethod
    def failure(self) -> str:
        """Return why the database cannot be used until `reopen` succeeds; empty while it can be.

        Any call may detect the failure, also a read that finds damage.
        """

    @abstractmethod
    def reopen(self, before_restart: Callable[[], None] = lambda: None) -> None:
        """Close and open again with all written data, which ends a failure.

        Reads raise RetriableError meanwhile. A damaged database starts again, empty; it first calls
        `before_restart`, before any reader can see the empty database.
        """

    @abstractmethod
    def set_aside(self, topic_id: str) -> str:
        """Begin with an empty database. Returns the name of the old data, "" if it is not kept.

        Only the last one is kept. Its name ends with `topic_id` in the base64 alphabet for file
        names. `topic_id` is 22 characters in either alphabet.
        """

    @abstractmethod
    def close(self) -> None:
        """Release everything; idempotent. Call no method afterwards."""
