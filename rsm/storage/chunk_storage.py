"""ChunkStorage: the verbs that every store must offer, and the powers that some have (PDP-34).

A chunk is one named object. Names are relative, of segments joined by "/", without empty, "." or
".." segments and without control characters; a binding refuses others with InvalidConfigError.
Guarantees of every binding: what a call returned from is durable and is seen by every later call
(read your writes); errors are those of rsm.segment.errors, the store's own chained behind them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from rsm.segment.copy_into import copy_into
from rsm.segment.errors import NotFoundError, TieredStorageError
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.expiry_rules import ExpiryRule


class Concat(Enum):
    """How a store joins chunks; the value is for people."""

    NONE = "none"
    BY_COPY = "by copy"  # the caller reads each source and appends it
    NATIVE = "native"  # the store does it by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The optional powers of a store; a verb whose power is missing raises UnsupportedError.

    With `inline_attributes` the request that creates a chunk carries its attributes; elsewhere they
    cost a file or a request of their own. With `confirmed_creation` a creation that returned was
    confirmed by the store, which said that it has content of just this length and CRC32C; to look
    at the chunk would tell no more.
    """

    append: bool
    truncate: bool
    concat: Concat
    inline_attributes: bool
    stored_checksum: bool
    confirmed_creation: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkInfo:
    """What the store says of one chunk; `crc32c` is None where it keeps no checksum."""

    name: str
    length_bytes: int
    last_modified_ms: int
    crc32c: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOutcome:
    """What became of one name of `delete_many`; `error` is None if the chunk is not there now."""

    name: str
    error: TieredStorageError | None = None


class ChunkStorage(ABC):
    """One store. All methods are thread-safe and bounded in time by the binding's settings."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this store can do; constant."""

    @abstractmethod
    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        """Create a chunk with all of `source`: afterwards it is whole, or it is not there.

        Returns the CRC32C of the bytes handed to the store. Raises AlreadyExistsError (nothing
        changed), CorruptError if `source` yields another length than it announced, and whatever
        `source` raises, both leaving no chunk. Not idempotent. CorruptError, too, if the store
        says that it has other bytes than it was handed: then there may be a chunk.
        """

    @abstractmethod
    def create(self, name: str) -> None:
        """Create an empty chunk to append to. Not idempotent: AlreadyExistsError."""

    @abstractmethod
    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        """Write `data` at the end, which must be at `offset_bytes`, else CorruptError.

        NotFoundError, UnsupportedError.
        """

    @abstractmethod
    def truncate(self, name: str, length_bytes: int) -> None:
        """Cut a chunk to its first `length_bytes`. Idempotent. NotFoundError, UnsupportedError."""

    @abstractmethod
    def concat(self, target: str, sources: Sequence[str]) -> None:
        """Join `sources` in order onto the end of `target` and remove them.

        NotFoundError, UnsupportedError; a failure half-way may leave a prefix joined.
        """

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether the chunk is there now."""

    @abstractmethod
    def info(self, name: str) -> ChunkInfo:
        """Length, age, checksum and attributes of a chunk. NotFoundError."""

    @abstractmethod
    def read_range(self, name: str, positions: ByteRange) -> bytes:
        """The bytes at `positions`, fewer only where the chunk ends. NotFoundError."""

    def read_range_into(self, name: str, positions: ByteRange, target: memoryview) -> int:
        """As `read_range`, to the beginning of `target`, which has room for it; how many bytes.

        Copied there, unless the binding knows better.
        """
        return copy_into(target, self.read_range(name, positions))

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a chunk and its attributes. Not idempotent: NotFoundError."""

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        """Remove chunks, one outcome per name in order; absent ones are done.

        Never raises for single names. One after the other, unless the binding knows better.
        """
        return tuple(self._deletion(name) for name in names)

    def _deletion(self, name: str) -> DeleteOutcome:
        try:
            self.delete(name)
        except NotFoundError:
            return DeleteOutcome(name=name)
        except TieredStorageError as error:
            return DeleteOutcome(name=name, error=error)
        return DeleteOutcome(name=name)

    @abstractmethod
    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        """Chunks whose name starts with `prefix` and sorts after `after`, in UTF-8 byte order.

        Attributes and checksums may be left out here; `info` has them. Not a snapshot: chunks
        that come or go meanwhile may or may not be seen.
        """

    def expiry_rules(self) -> tuple[ExpiryRule, ...]:
        """Rules by which the store itself deletes or archives chunks; empty where it has none.

        Empty, too, where a binding cannot ask: a directory, HDFS, and Azure, which shows its rules
        to its management API only. TieredStorageError if they cannot be read, for lack of a right
        most often.
        """
        return ()

    @abstractmethod
    def check_access(self) -> None:
        """Return if the store can be reached with what was configured.

        Raises InvalidConfigError (no such root or bucket) or RetriableError. Changes nothing.
        """

    def kept(self) -> Collection[str]:
        """The chunks of which content that was read is kept here. Asks the store nothing."""
        return ()

    def forget(self, name: str) -> None:  # noqa: B027 - most keep nothing
        """Keep nothing that was read of a chunk: what was read was not what was stored.

        Asks the store nothing. Only what keeps content that was read has something to forget.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections and descriptors; idempotent. No call may follow."""
