"""ChunkStorage: the operations that each store supports, and the optional ones (PDP-34).

A chunk is a named object. Names are relative: components joined by "/", no empty, "." or ".."
components, no control characters. A binding refuses other names with InvalidConfigError. Each
binding guarantees that the effect of a finished call is durable and visible to all later calls.
Errors are those of rsm.segment.errors, chained to the store's own.
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
"""Called before each HTTP request of a binding is sent, also if a client repeats it. Thread-safe.

Receives S3's operation, such as `put_object`; for other stores, the HTTP method.
"""


def ignore_request(_operation: str) -> None:
    """Observe nothing."""


class Concat(Enum):
    """How a store joins chunks; the value is shown to users."""

    NONE = "none"
    BY_COPY = "by copy"  # the client reads each source and appends it
    NATIVE = "native"  # without moving bytes through the client


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The optional features of a store; a method without its feature raises UnsupportedError.

    With `has_inline_attributes` the creation request carries the attributes; otherwise they need a
    file or a request of their own. With `has_confirmed_creation` a creation ends only after the
    store confirmed the content's CRC32C or length, so that no further check is needed. With
    `has_reusable_uploads` the store keeps what unfinished creations sent, and others can use it
    (ContentReuse).
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
    """The store's metadata of one chunk; `crc32c` is None if it keeps no checksum."""

    name: str
    length_bytes: int
    last_modified_ms: int
    crc32c: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOutcome:
    """The result for one name of `delete_many`; `error` is None if the chunk is absent now."""

    name: str
    error: TieredStorageError | None = None


class ChunkStorage(ABC):
    """One store. All methods are thread-safe; the binding's settings limit their time."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """The features of this store; constant."""

    @abstractmethod
    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        """Create a chunk with all of `source`: it is either complete or absent.

        A source may announce no length (None); then its end decides. A known length needs fewer
        requests in some stores. An AcknowledgedSource learns which bytes the store accepted: all of
        them before the return. A ReusingSource names unfinished creations whose bytes may be used
        again; only stores with `has_reusable_uploads` do so. Returns the CRC32C of the content. Not
        idempotent. Raises AlreadyExistsError (nothing changed), CorruptError if the length of
        `source` differs from its announcement, RetriableError if reuse fails after all, and the
        errors of `source`; none of these leaves a new chunk. Also raises CorruptError if the store
        reports other bytes than were sent; the chunk may then exist.
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

        Raises NotFoundError, UnsupportedError, InvalidConfigError if a chunk is named twice. After
        a failure some sources may already be joined.
        """

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Return whether the chunk exists now."""

    @abstractmethod
    def info(self, name: str) -> ChunkInfo:
        """Return length, age, checksum and attributes of a chunk. Raises NotFoundError."""

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
        """Remove what unfinished creations of a chunk left in the store. Idempotent.

        Creations in progress then fail, in all processes. A complete chunk does not change. Only
        stores that keep the parts of a killed process override this. Raises TieredStorageError.
        """

    @abstractmethod
    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        """Yield chunks whose name starts with `prefix` and sorts after `after`, in UTF-8 order.

        May omit attributes and checksums; `info` has them. Not a snapshot: chunks created or
        deleted during the listing may or may not be included.
        """

    def lifecycle_rules(self) -> tuple[LifecycleRule, ...]:
        """Return the rules by which the store itself deletes or archives chunks.

        Also empty for stores whose rules a binding cannot read: a directory, HDFS, and Azure, which
        has them only in its management API. Raises TieredStorageError if the read fails, most
        often because a permission is missing.
        """
        return ()

    @abstractmethod
    def check_access(self) -> None:
        """Check that the store is reachable with the configuration. Changes nothing.

        Raises InvalidConfigError or RetriableError.
        """

    def kept(self) -> Collection[str]:
        """Return the names of chunks with cached content, without a request to the store."""
        return ()

    def forget(self, name: str) -> None:  # noqa: B027 - most have no cache
        """Drop the cached content of a chunk, because it may differ from the stored content.

        Sends no request to the store. Only stores with a cache override this.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections and descriptors; idempotent. No call may follow."""
