"""Defines ChunkStorage: the operations that each store supports, and the optional ones (PDP-34).

A chunk is a named object. Names are relative: components joined by "/", without control characters
or surrogates; no component is empty, "." or "..". A binding refuses other names with
InvalidConfigError. Each binding guarantees that the effect of a finished call is durable and
visible to all later calls. Errors are those of rsm.segment.errors, chained to the store's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from rsm.segment.copy_into import copy_into
from rsm.segment.errors import NotFoundError, TieredStorageError
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.lifecycle_rules import LifecycleRule

RequestObserver = Callable[[str], None]
"""Observes each HTTP request before a binding sends it, also each repetition. Thread-safe.

Gets S3's operation, such as `put_object`; for other stores, the HTTP method.
"""


def ignore_request(_operation: str) -> None:
    """Observe nothing."""


class Concat(Enum):
    """Represents how a store joins chunks; users see the value."""

    NONE = "none"
    BY_COPY = "by copy"  # The client reads each source and appends it.
    NATIVE = "native"  # The store joins chunks without moving bytes through the client.


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Represents the optional features of a store. An unsupported method raises UnsupportedError.

    With `has_inline_attributes` the creation request carries the attributes; otherwise they need a
    separate file or request. With `has_confirmed_creation` a creation ends only after the store
    confirmed the content's CRC32C or length, so that no further check is needed. With
    `has_reusable_uploads` the store keeps the bytes of unfinished creations, and later creations
    can reuse them (ContentReuse).
    """

    can_append: bool
    can_truncate: bool
    concat: Concat
    has_inline_attributes: bool
    has_stored_checksum: bool
    has_confirmed_creation: bool = False
    has_reusable_uploads: bool = False
    is_read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkInfo:
    """Represents the store's metadata of one chunk; `crc32c` is None if the store keeps none."""

    name: str
    length_bytes: int
    last_modified_ms: int
    crc32c: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOutcome:
    """Represents `delete_many`'s result for one name; `error` is None if the chunk is absent."""

    name: str
    error: TieredStorageError | None = None


class ChunkStorage(ABC):
    """Represents a store. All methods are thread-safe; the binding's settings limit their time."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Return the features of this store, which are constant."""

    @abstractmethod
    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        """Create a chunk with the content of `source`; return the content's CRC32C.

        The chunk is either complete or absent. If the announced length is None, the content ends
        when the source does; some stores then need more requests. An AcknowledgedSource gets the
        number of bytes that the store accepted: all of them before the return. A ReusingSource
        names unfinished creations; only stores with `has_reusable_uploads` reuse their bytes. Not
        idempotent. Raises AlreadyExistsError (nothing changed), CorruptError if the length of
        `source` differs from the announced length, RetriableError if the reuse fails, and the
        errors of `source`; none of these leaves a new chunk of this name. Also raises CorruptError
        if the stored bytes differ from the sent bytes; the chunk may then exist.
        """

    @abstractmethod
    def create(self, name: str) -> None:
        """Create an empty chunk for appends. Not idempotent: raises AlreadyExistsError."""

    @abstractmethod
    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        """Write `data` at the chunk's end, which must be at `offset_bytes`.

        Raises CorruptError if the end is elsewhere, NotFoundError, UnsupportedError.
        """

    @abstractmethod
    def truncate(self, name: str, length_bytes: int) -> None:
        """Cut a chunk to its first `length_bytes`. Idempotent.

        Raises NotFoundError, UnsupportedError, CorruptError if the chunk is shorter.
        """

    @abstractmethod
    def concat(self, target: str, sources: Sequence[str]) -> None:
        """Append `sources` in order to `target` and remove them.

        Raises NotFoundError, UnsupportedError, or InvalidConfigError if a chunk is named twice.
        After a failure some sources may already be joined.
        """

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Return whether the chunk exists now."""

    @abstractmethod
    def info(self, name: str) -> ChunkInfo:
        """Return the length, time, checksum and attributes of a chunk. Raises NotFoundError."""

    @abstractmethod
    def read_range(self, name: str, positions: ByteRange) -> bytes:
        """Return the bytes at `positions`, fewer only at the chunk's end. Raises NotFoundError."""

    def read_range_into(self, name: str, positions: ByteRange, target: memoryview) -> int:
        """Read into the beginning of `target`, which is large enough; return the byte count.

        The default copies the result of `read_range`; a binding may avoid the copy.
        """
        return copy_into(target, self.read_range(name, positions))

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a chunk and its attributes. Not idempotent: raises NotFoundError."""

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        """Delete chunks; return one outcome per name in order. Absent chunks count as deleted.

        A failed deletion of one name is an outcome and raises nothing. The default deletes the
        chunks one after the other.
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

    def discard_uploads(self, name: str) -> None:  # noqa: B027 - most keep none
        """Remove the parts that unfinished creations of a chunk left in the store. Idempotent.

        Creations of the chunk in progress then fail, in all processes. A complete chunk does not
        change. Only stores that keep the parts of a killed process override this method. Raises
        TieredStorageError.
        """

    @abstractmethod
    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        """Yield chunks whose name starts with `prefix` and sorts after `after`, in UTF-8 order.

        May omit attributes and checksums; `info` returns them. The listing is not a snapshot: it
        may or may not include chunks that are created or deleted meanwhile.
        """

    def lifecycle_rules(self) -> tuple[LifecycleRule, ...]:
        """Return the store's own rules that delete or archive chunks.

        Returns nothing for a directory, for HDFS, and for Azure: only Azure's management API can
        read its rules. Raises TieredStorageError if the read fails, most often because a permission
        is missing.
        """
        return ()

    @abstractmethod
    def check_access(self) -> None:
        """Check that the store is reachable with the configuration. Changes nothing.

        Raises InvalidConfigError or RetriableError.
        """

    def kept(self) -> Collection[str]:
        """Return the names of chunks with cached content. Sends no request to the store."""
        return ()

    def forget(self, name: str) -> None:  # noqa: B027 - most have no cache
        """Drop the cached content of a chunk, because it may differ from the stored content.

        Sends no request to the store. Only stores with a cache override this.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections and descriptors; idempotent. No call may follow."""
