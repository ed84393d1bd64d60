"""The request for one partition's batches from the store, and its result."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from rlm.remote_read.segment_parts import SegmentPart
from rlmm.lookup import NotStored
from rsm.cache.chunk_lease import ChunkLease
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import AbortedTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """Batches of one partition, starting with the one that contains `offset`.

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
    or below the requested offset, or above it after a gap. The next read starts at `next_offset`.
    The aborted transactions are all those with an offset in [base_offset, next_offset), even if
    they end later.
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
        """Release the memory; the buffers may not be used afterwards. Idempotent, thread-safe."""
        self.lease.release()


FetchOutcome = RemoteSlice | NotStored
