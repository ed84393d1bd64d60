"""A log segment to be copied: its bytes, its indexes and its lineage.

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
    """Bytes that a store reads once, from the start to the end."""

    @property
    def length_bytes(self) -> int | None:
        """The number of bytes that one pass of `chunks` yields; None if unknown before its end."""

    def chunks(self) -> Iterator[memoryview]:
        """Yield the content once. Each view is valid only until the next one is requested.

        Raises CorruptError before the end if the content is invalid, RetriableError if it changed
        during the pass. After an error the caller must discard all bytes of the pass.
        """


class SizedSource(ContentSource, Protocol):
    """Bytes of a known length."""

    @property
    def length_bytes(self) -> int:
        """The number of bytes that one pass of `chunks` yields."""


class PartBounds(Enum):
    """The part boundaries of content that does not list the lengths of its parts."""

    ANY = "any"
    EACH_CHUNK = "each chunk"  # each chunk is a part


@runtime_checkable
class PartedSource(ContentSource, Protocol):
    """Content with significant part boundaries; a store's multipart upload keeps them."""

    @property
    def parts(self) -> Sequence[int] | PartBounds:
        """The lengths of the parts, `length_bytes` in total, or the rule for their bounds."""


def parts_of(source: ContentSource) -> Sequence[int] | PartBounds:
    """Return the required parts of a source's content."""
    return source.parts if isinstance(source, PartedSource) else PartBounds.ANY


@runtime_checkable
class AcknowledgedSource(ContentSource, Protocol):
    """Content that its producer keeps in memory until the store has accepted it."""

    def acknowledge(self, length_bytes: int) -> None:
        """Record that the store accepted `length_bytes` more; any thread may call it."""


def acknowledge(source: ContentSource, length_bytes: int) -> None:
    """Report to a source that the store accepted `length_bytes` more of it."""
    if isinstance(source, AcknowledgedSource):
        source.acknowledge(length_bytes)


Interrupt = Callable[[BaseException], None]
"""Ends content with an error that its reader gets after the pieces so far. Thread-safe."""


@runtime_checkable
class PushedSource(ContentSource, Protocol):
    """Content that a writer pushes while a store reads it: a reader may wait long for more.

    If a part fails meanwhile, the store interrupts the content, so that its writer gets the error.
    """

    @property
    def interrupt(self) -> Interrupt | None:
        """The function that interrupts the content; None if no writer pushes it."""


def interrupt_of(source: ContentSource) -> Interrupt | None:
    """Return the function that interrupts a source's content; None if no writer pushes it."""
    return source.interrupt if isinstance(source, PushedSource) else None


@dataclass(slots=True, kw_only=True)
class ContentReuse:
    """The objects whose unfinished creations may have sent the beginning of a content. Thread-safe.

    A store that keeps the bytes of such a creation may use them again if the content has the same
    bytes, and then calls `reused` with their length. The store calls `unused` with each of `names`
    that it needs no longer. It may create objects of these names, for which the caller is
    responsible, or end their creations; their own creators are fenced. If the creation of this
    content fails, the store keeps the sent bytes for a later creation, until the caller discards
    them.
    """

    names: tuple[str, ...]
    reused: Callable[[int], None]
    unused: Callable[[str], None]
    end_position: int | None = field(default=None, init=False)

    def end_at(self, position: int) -> None:
        """Use nothing again from this position of the content on. Later calls change nothing."""
        if self.end_position is None:
            self.end_position = position

    def allows(self, end_position: int) -> bool:
        """Return whether the content before this position may be used again."""
        return self.end_position is None or end_position <= self.end_position


@runtime_checkable
class ReusingSource(ContentSource, Protocol):
    """Content that may have been sent before, in an unfinished creation of another object."""

    @property
    def reuse(self) -> ContentReuse | None:
        """The earlier creations whose bytes may be used again; None if the content is new."""


def reuse_of(source: ContentSource) -> ContentReuse | None:
    """Return the earlier creations whose bytes may be used again; None if the content is new."""
    return source.reuse if isinstance(source, ReusingSource) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedSource(ABC):
    """A PartedSource with the bytes and the parts of another source, and its own `chunks`."""

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
        """Yield the source's chunks, one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesSource:
    """Content in memory: a SizedSource with one chunk."""

    content: bytes

    @property
    def length_bytes(self) -> int:
        return len(self.content)

    def chunks(self) -> Iterator[memoryview]:
        if self.content:
            yield memoryview(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """One entry of a transaction index (Kafka's AbortedTxn): offsets as Kafka stores them."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCompanions:
    """The data stored in addition to a segment's bytes. None: the broker has no such file.

    `lineage` is the log's whole lineage, not only the segment's part. `aborted_transactions` are
    all that overlap the segment, up to the last stable offset at copy time. They include those with
    a marker in a later segment, so that a reader needs no other source.
    """

    offset_index: bytes
    time_index: bytes
    transaction_index: bytes | None
    producer_snapshot: bytes | None
    lineage: Lineage
    aborted_transactions: tuple[AbortedTransaction, ...]


BatchExtents = Callable[[], Iterator[tuple[int, int]]]
"""Yields (base offset, size in bytes) of each batch of a log in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegmentData:
    """The data to copy for one rolled segment (KIP-405).

    `batches` reads the headers of `log`. It can run repeatedly, and costs less than a pass over the
    content; None if no such way exists. Raises the errors of `log`.
    """

    offsets: OffsetRange
    log: SizedSource
    companions: SegmentCompanions
    batches: BatchExtents | None = None
