"""A log segment on its way to the store: its bytes, and what travels beside them.

Owns what a log source hands to a remote storage manager (KIP-405's LogSegmentData) and the content
that a store takes. Must not know where the bytes come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange


class ContentSource(Protocol):
    """Bytes that can be read from their start as often as needed (a retried upload rereads)."""

    @property
    def length_bytes(self) -> int:
        """How many bytes one pass of `chunks` yields in all."""

    def chunks(self) -> Iterator[memoryview]:
        """One pass over the content. Each view is valid only until the next one is asked for.

        Raises CorruptError before the pass ends if the content is not what it has to be, and
        RetriableError if it changed under the reader: then nothing of the pass may be kept.
        """


@runtime_checkable
class PartedSource(ContentSource, Protocol):
    """Content in parts that mean something: a store that uploads in parts keeps to these."""

    @property
    def part_lengths_bytes(self) -> Sequence[int] | None:
        """The lengths of the parts in order; their sum is `length_bytes`. None: any will do."""


def part_lengths_of(source: ContentSource) -> Sequence[int] | None:
    """The parts that a source's content has to be uploaded in, if it matters."""
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
        """One pass over the source's chunks, each as it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesSource:
    """Content that is in memory whole: a ContentSource of one piece."""

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
    """What is stored beside a segment's bytes. None: the broker has no such file, for certain.

    `lineage` is the log's whole lineage, not only the segment's part. `aborted_transactions` are
    all that overlap the segment, also those whose marker lies in a later segment, up to the last
    stable offset at copy time: a reader needs no second place to ask.
    """

    offset_index: bytes
    time_index: bytes
    transaction_index: bytes | None
    producer_snapshot: bytes | None
    lineage: Lineage
    aborted_transactions: tuple[AbortedTransaction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegmentData:
    """All that is copied for one rolled segment (KIP-405).

    `batches` walks the batches of `log` in order by their headers, giving (base offset, size in
    bytes) of each, as often as needed, for less than a pass over the content costs; None where
    there is no such way. Raises as `log` does.
    """

    offsets: OffsetRange
    log: ContentSource
    companions: SegmentCompanions
    batches: Callable[[], Iterator[tuple[int, int]]] | None = None
