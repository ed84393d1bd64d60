"""OrderedStore: tables of bytes in key order, written in atomic batches. No events here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum


class Table(Enum):
    """The tables; the value is the name on disk. Layouts are in rlmm/cache/keys.py."""

    CHECKPOINT = "checkpoint"
    SEGMENTS = "segments"
    SEGMENT_OFFSETS = "segment_offsets"
    UNFINISHED_BY_OFFSET = "unfinished_by_offset"
    BOUNDS = "bounds"
    PARTITIONS = "partitions"
    RECORD_KEYS = "record_keys"
    CLUSTER = "cluster"

    # Tables are looked up at each access, and Enum's own hash is that of a name.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSize:
    """What a store takes. `entry_counts` may be estimates; memory is what is held as of now."""

    disk_bytes: int = 0
    block_cache_bytes: int = 0
    write_buffer_bytes: int = 0
    entry_counts: Mapping[Table, int] = field(default_factory=dict)


class StoreReader(ABC):
    """One consistent view of some tables. One thread's; ends with its context."""

    @abstractmethod
    def get(self, table: Table, key: bytes) -> bytes | None:
        """The value of a key."""

    @abstractmethod
    def ascending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in [start, end), smallest key first."""

    @abstractmethod
    def descending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in [start, end), greatest key first."""


class StoreBatch(ABC):
    """Changes to be written together; the last one to a key holds. One thread's."""

    @abstractmethod
    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """Set a key's value."""

    @abstractmethod
    def delete(self, table: Table, key: bytes) -> None:
        """Remove a key; nothing happens if it is not there."""

    @abstractmethod
    def delete_range(self, table: Table, start: bytes, end: bytes) -> None:
        """Remove the keys in [start, end) that were written before this batch.

        Nothing that this batch puts may lie in it.
        """

    @abstractmethod
    def clear_tables(self) -> None:
        """Remove all keys of all tables, those put earlier in this batch included."""


class OrderedStore(ABC):
    """All methods are thread-safe; batches are written one after another.

    Raises CorruptError where what was stored cannot be read, RetriableError where the disk refuses.
    """

    @abstractmethod
    def get(self, table: Table, key: bytes) -> bytes | None:
        """The value of a key as of now."""

    @abstractmethod
    def batch(self) -> StoreBatch:
        """An empty batch."""

    @abstractmethod
    def write(self, batch: StoreBatch) -> None:
        """Apply a batch of this store: wholly or, after a crash too, not at all."""

    @abstractmethod
    def read(self, *tables: Table) -> AbstractContextManager[StoreReader]:
        """A consistent view of these tables as of now. Writers may wait for it: close it soon."""

    @abstractmethod
    def size(self) -> StoreSize:
        """What the store takes now; nothing while it cannot be used. Cheap enough to be scraped."""

    @abstractmethod
    def expect(self, *, much_is_written: bool) -> None:
        """Tell what comes: much is written and little read, or, as at first, the other way round.

        Costs and speed change by that, answers don't. Opening again forgets it.
        """

    @abstractmethod
    def failure(self) -> str:
        """Why the store cannot be used, until `reopen` succeeds; empty while it can.

        Whatever call found that out: what a read has found damaged is not written either.
        """

    @abstractmethod
    def reopen(self, before_restart: Callable[[], None] = lambda: None) -> None:
        """Close and open again, with all that was written: a failure lasts until then.

        Whoever reads meanwhile gets RetriableError. What is damaged is begun again instead, empty:
        `before_restart` is called then, before anybody can read that.
        """

    @abstractmethod
    def set_aside(self, topic_id: str) -> str:
        """Begin again, empty. Returns under which name what was there is kept; empty if it is not.

        At most one is kept: the last. Its name ends with `topic_id`, 22 characters of either of
        base64's alphabets, in that of file names.
        """

    @abstractmethod
    def close(self) -> None:
        """Release everything; idempotent. No call may follow."""
