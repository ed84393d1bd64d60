"""Defines the request for one partition's batches from the store, and its outcomes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from rlm.remote_read.segment_parts import SegmentPart
from rlmm.lookup import NotStored
from rsm.cache.chunk_lease import ChunkLease
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import AbortedTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """Represents a request for batches of one partition, from the one that contains `offset`.

    `client` identifies the reader. The gateway prefetches for each sequential reader, and all
    readers share the memory evenly. With `min_one_batch`, the result contains the first batch
    whatever its size. It contains aborted transactions only with `read_committed`.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    max_bytes: int
    min_one_batch: bool
    read_committed: bool
    client: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSlice:
    """Represents complete, verified batches of one segment, in the cache's memory.

    `buffers` contain the batches in order, byte for byte as stored; a batch may span several. They
    are empty if the first batch is larger than `max_bytes` and `min_one_batch` is false.
    `base_offset` is that of the first batch. It is above the requested offset only if no stored
    batch contains that offset. The next read starts at `next_offset`. With `read_committed`, the
    aborted transactions are all those with an offset in [base_offset, next_offset), even if they
    end later.
    """

    segment_id: RemoteLogSegmentId
    base_offset: int
    next_offset: int
    buffers: tuple[memoryview, ...]
    aborted_transactions: tuple[AbortedTransaction, ...]
    lease: ChunkLease[SegmentPart]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.buffers))

    def release(self) -> None:
        """Release the memory. Do not use the buffers afterwards. Idempotent, thread-safe."""
        self.lease.release()


FetchOutcome = RemoteSlice | NotStored


@dataclass(frozen=True, slots=True)
class ReadPending:
    """Represents a read that is late and continues; the client gets an empty response."""


@dataclass(frozen=True, slots=True)
class ReadThrottled:
    """Represents a read that the quota or a full queue prevented; the response is empty."""


@dataclass(frozen=True, slots=True)
class ReadRefused:
    """Represents a failed read; the client gets this error code for the partition."""

    error_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDivergence:
    """Represents a reader whose log diverges: `epoch` ended at `end_offset` (KIP-595)."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class GapBelow:
    """Represents a read at an offset after the last stored batch.

    The broker's log continues at `next_offset`, and neither tier has a batch in between.
    """

    next_offset: int


RemoteOutcome = RemoteSlice | ReadPending | ReadThrottled | ReadRefused | LogDivergence | GapBelow


def release_all(outcomes: Iterable[RemoteOutcome]) -> None:
    """Release the memory of all slices. Idempotent, thread-safe."""
    for outcome in outcomes:
        if isinstance(outcome, RemoteSlice):
            outcome.release()
