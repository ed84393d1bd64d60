"""The request for one partition's batches from the store, its result, and other outcomes."""

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
    """A request for batches of one partition, starting with the one that contains `offset`.

    `client` identifies the reader. The sequential reads of each reader are prefetched, and all
    readers share the memory evenly. With `min_one_batch` the first batch is returned whatever its
    size. Aborted transactions are looked up only with `read_committed`.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    max_bytes: int
    min_one_batch: bool
    read_committed: bool
    client: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSlice:
    """Complete, verified batches of one segment, byte for byte as stored, without a copy.

    `buffers` contain the batches in order; a batch may span several. They are empty if the first
    batch is larger than `max_bytes` without `min_one_batch`. `base_offset` is the first batch's: at
    or below the requested offset, or above it if no stored batch has that offset. The next read
    starts at `next_offset`. With `read_committed`, the aborted transactions are all those with an
    offset in [base_offset, next_offset), even if they end later.
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
        """Release the memory; do not use the buffers afterwards. Idempotent, thread-safe."""
        self.lease.release()


FetchOutcome = RemoteSlice | NotStored


@dataclass(frozen=True, slots=True)
class ReadPending:
    """A read that is not finished in time and continues; the client gets an empty response."""


@dataclass(frozen=True, slots=True)
class ReadThrottled:
    """A read that did not start, due to the quota or a full queue; the response is empty."""


@dataclass(frozen=True, slots=True)
class ReadRefused:
    """A read that fails: the client gets this error code for the partition."""

    error_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDivergence:
    """The reader's last fetched epoch diverges: `epoch` ended at `end_offset` (KIP-595)."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class GapBelow:
    """No batch at the offset or above is stored; the broker's log continues at `next_offset`."""

    next_offset: int


RemoteOutcome = RemoteSlice | ReadPending | ReadThrottled | ReadRefused | LogDivergence | GapBelow


def release_all(outcomes: Iterable[RemoteOutcome]) -> None:
    """Release the memory of all slices. Idempotent, thread-safe."""
    for outcome in outcomes:
        if isinstance(outcome, RemoteSlice):
            outcome.release()
