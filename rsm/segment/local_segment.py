"""A log segment to be copied: its bytes, its indexes and its lineage.

Defines the input of a remote storage manager (KIP-405's LogSegmentData) and of a store. Must not
know where the bytes come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange


class ContentSource(Protocol):
    """Bytes that can be read from the start repeatedly; a retried upload needs that."""

    @property
    def length_bytes(self) -> int:
        """The number of bytes that one pass of `chunks` yields."""

    def chunks(self) -> Iterator[memoryview]:
        """Yield the content once. Each view is valid only until the next one is requested.

        Raises CorruptError before the end if the content is invalid, RetriableError if it changed
        during the pass. After an error the caller must discard all bytes of the pass.
        """


@runtime_checkable
class PartedSource(ContentSource, Protocol):
    """Content with significant part boundaries; a store's multipart upload keeps them."""

    @property
    def part_lengths_bytes(self) -> Sequence[int] | None:
        """The lengths of the parts in order, in total `length_bytes`. None: any parts will do."""


def part_lengths_of(source: ContentSource) -> Sequence[int] | None:
    """Return the required part lengths of a source's content, or None."""
    return source.part_lengths_bytes if isinstance(source, PartedSource) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedSource(ABC):
    """A PartedSource with the bytes and the parts of another source, and its own `chunks`."""

    source: ContentSource

    @property
    def length_bytes(self) -> int:
        return self.source.length_bytes

    @property
    def part_lengths_bytes(self) -> Sequence[int] | None:
        return part_lengths_of(self.source)

    @abstractmethod
    def chunks(self) -> Iterator[memoryview]:
        """Yield the source's chunks, one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesSource:
    """Content in memory: a ContentSource with one chunk."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegmentData:
    """The data to copy for one rolled segment (KIP-405).

    `batches` yields (base offset, size in bytes) of each batch of `log` in order, by the headers.
    It can run repeatedly, and costs less than a pass over the content; None if no such way
    exists. Raises the errors of `log`.
    """

    offsets: OffsetRange
    log: ContentSource
    companions: SegmentCompanions
    batches: Callable[[], Iterator[tuple[int, int]]] | None = None
