"""Represents a log segment to copy: its bytes, its indexes and its lineage.

Defines the input of a remote storage manager (KIP-405's LogSegmentData) and of a store. This module
does not know where the bytes come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable

from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange


class ContentSource(Protocol):
    """Represents bytes that a store reads once, from start to end."""

    @property
    def length_bytes(self) -> int | None:
        """Return how many bytes `chunks` yields in one pass; None if unknown before its end."""

    def chunks(self) -> Iterator[memoryview]:
        """Yield the content once. Each view is valid only until the next one is requested.

        Raises CorruptError before the end if the content is invalid, RetriableError if it changed
        during the pass. After an error, the caller must discard all bytes of the pass.
        """


class SizedSource(ContentSource, Protocol):
    """Represents bytes of a known length."""

    @property
    def length_bytes(self) -> int:
        """Return the number of bytes that `chunks` yields in one pass."""


class PartBounds(Enum):
    """Represents the part boundaries of content that does not list the lengths of its parts."""

    ANY = "any"
    EACH_CHUNK = "each chunk"  # Each chunk is a part.


@runtime_checkable
class PartedSource(ContentSource, Protocol):
    """Represents content whose part boundaries matter: a store's multipart upload keeps them."""

    @property
    def parts(self) -> Sequence[int] | PartBounds:
        """Return the lengths of all parts, or the rule for the parts' boundaries."""


def parts_of(source: ContentSource) -> Sequence[int] | PartBounds:
    """Return the required parts of a source's content."""
    return source.parts if isinstance(source, PartedSource) else PartBounds.ANY


@runtime_checkable
class AcknowledgedSource(ContentSource, Protocol):
    """Represents content that its producer keeps in memory until the store has accepted it."""

    def acknowledge(self, length_bytes: int) -> None:
        """Record that the store accepted `length_bytes` more. Any thread may call this method."""


def acknowledge(source: ContentSource, length_bytes: int) -> None:
    """Report to a source that the store accepted `length_bytes` more of it."""
    if isinstance(source, AcknowledgedSource):
        source.acknowledge(length_bytes)


Interrupt = Callable[[BaseException], None]
"""Ends content with an error that its reader gets after the pieces so far. Thread-safe."""


@runtime_checkable
class PushedSource(ContentSource, Protocol):
    """Represents content that a writer pushes while a store reads it.

    The reader may wait a long time for more content. If a part fails in the meantime, the store
    interrupts the content, so that the writer gets the error.
    """

    @property
    def interrupt(self) -> Interrupt | None:
        """Return the function that interrupts the content; None if no writer pushes it."""


def interrupt_of(source: ContentSource) -> Interrupt | None:
    """Return the function that interrupts a source's content; None if no writer pushes it."""
    return source.interrupt if isinstance(source, PushedSource) else None


@dataclass(slots=True, kw_only=True)
class ContentReuse:
    """Names objects whose unfinished creations may have sent the beginning of the content.

    Thread-safe. A store that keeps the bytes of such a creation may use them again if the content
    begins with the same bytes. It then calls `reused` with their length. The store calls `unused`
    with each of `names` that it no longer needs. It may end the creations of these objects or
    complete the objects, for which the caller is then responsible; the original creators are
    fenced. If the creation of this content fails, the store keeps the sent bytes for a later
    creation, until the caller discards them.
    """

    names: tuple[str, ...]
    reused: Callable[[int], None]
    unused: Callable[[str], None]
    end_position: int | None = field(default=None, init=False)

    def end_at(self, position: int) -> None:
        """Forbid reuse at and after this position of the content. Later calls change nothing."""
        if self.end_position is None:
            self.end_position = position

    def allows(self, end_position: int) -> bool:
        """Return whether bytes of the content below this position may be used again."""
        return self.end_position is None or end_position <= self.end_position


@runtime_checkable
class ReusingSource(ContentSource, Protocol):
    """Represents content that an unfinished creation of another object may have sent before."""

    @property
    def reuse(self) -> ContentReuse | None:
        """Return the earlier creations whose bytes can be reused; None if the content is new."""


def reuse_of(source: ContentSource) -> ContentReuse | None:
    """Return the earlier creations whose bytes can be reused; None if the content is new."""
    return source.reuse if isinstance(source, ReusingSource) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedSource(ABC):
    """Represents another source with the same bytes and parts; subclasses define `chunks`."""

    source: ContentSource

    @property
    def length_bytes(self) -> int | None:
        return self.source.length_bytes

    @property
    def parts(self) -> Sequence[int] | PartBounds:
        return parts_of(self.source)

    def acknowledge(self, length_bytes: int) -> None:
        """Pass the store's acknowledgement on to the source."""
        acknowledge(self.source, length_bytes)

    @property
    def interrupt(self) -> Interrupt | None:
        return interrupt_of(self.source)

    @property
    def reuse(self) -> ContentReuse | None:
        return reuse_of(self.source)

    @abstractmethod
    def chunks(self) -> Iterator[memoryview]:
        """Yield the source's chunks in one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesSource:
    """Represents content in memory as a SizedSource with at most one chunk."""

    content: bytes

    @property
    def length_bytes(self) -> int:
        return len(self.content)

    def chunks(self) -> Iterator[memoryview]:
        if self.content:
            yield memoryview(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """Represents an entry of a transaction index (Kafka's AbortedTxn)."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCompanions:
    """Represents the data that is stored with a segment's log.

    A field is None if the broker has no such file. `lineage` is the log's whole lineage, not only
    the segment's part. `aborted_transactions` contains all aborted transactions that overlap the
    segment, up to the last stable offset at copy time. So a reader needs no other source, even if
    some of the transactions' markers are in later segments.
    """

    offset_index: bytes
    time_index: bytes
    transaction_index: bytes | None
    producer_snapshot: bytes | None
    lineage: Lineage
    aborted_transactions: tuple[AbortedTransaction, ...]


BatchExtents = Callable[[], Iterator[tuple[int, int]]]
"""Yields the (base offset, size in bytes) of each batch of a log, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegmentData:
    """Represents the data to copy for one rolled segment (KIP-405).

    `batches` reads the batch headers in `log`, for less than the cost of a pass over the content.
    It can run repeatedly, and raises the errors of `log`. It is None if the headers cannot be read
    separately.
    """

    offsets: OffsetRange
    log: SizedSource
    companions: SegmentCompanions
    batches: BatchExtents | None = None
