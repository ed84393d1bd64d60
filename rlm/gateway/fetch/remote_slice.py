"""What is asked of the remote tier for one partition of a fetch, and what it answers."""

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
    """Batches of one partition, from the one that holds `offset` on.

    `client` tells readers apart: who asks for what follows its last answer is read ahead for, and
    all have an even share of the memory. With `min_one_batch` the first batch is given however
    large it is. Aborted transactions are looked up with `read_committed` only.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    max_bytes: int
    min_one_batch: bool
    read_committed: bool
    client: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSlice:
    """Whole, checked batches of one segment, byte for byte as stored, without a copy.

    `buffers` in order are the batches; one may lie in several of them. No buffers: the first batch
    is larger than `max_bytes`, and that was not allowed. `base_offset` is the first batch's, at or
    below the offset asked for or, behind a gap, above it; reading goes on at `next_offset`. The
    aborted transactions are all that have an offset in [base_offset, next_offset): those that end
    behind it are listed too, those that begin behind it are not.
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
        """Give the memory back; the buffers may not be used after. Idempotent, thread-safe."""
        self.lease.release()


FetchOutcome = RemoteSlice | NotStored
