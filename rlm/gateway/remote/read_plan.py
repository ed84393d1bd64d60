"""Plans the reads of a segment for a fetch: shared chunks, or a range for it alone. Pure.

A sequential reader gets chunks, because the next chunks are prefetched and other readers share
them. A first read at a position waits for the store, so it reads little more than the requested
bytes. This module uses positions only, not offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.gateway.fetch.remote_result import SliceRequest
from rlm.remote_read.segment_parts import SegmentPart, SegmentParts
from rsm.cache.chunk_lease import ChunkRequest
from rsm.cache.chunk_table import ChunkKey
from rsm.segment.metadata import RemoteLogSegmentMetadata

# The smallest range that a fetch requests outside of the shared chunks.
_RANGE_MIN_BYTES = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """Represents the reads for a fetch.

    `requests` are required, and contain the log up to `end_position`. `following` are optional
    chunks after them.
    """

    requests: Sequence[ChunkRequest[SegmentPart]]
    end_position: int
    following: Sequence[ChunkKey] = ()


class ReadPlans:
    """Plans the reads for fetches. Thread-safe.

    `has_chunk` returns whether a chunk is in memory or being read. `plan_range` reads at most
    `max_requested_bytes` of the requested bytes, and at most `most_bytes` in total.
    """

    def __init__(
        self,
        parts: SegmentParts,
        has_chunk: Callable[[ChunkKey], bool],
        *,
        max_requested_bytes: int,
        most_bytes: int,
    ) -> None:
        self._parts = parts
        self._has_chunk = has_chunk
        self._max_requested_bytes = max_requested_bytes
        self._most_bytes = most_bytes

    def plan_range(
        self,
        fetch: SliceRequest,
        metadata: RemoteLogSegmentMetadata,
        position: int,
        reach_position: int = 0,
    ) -> ReadPlan:
        """Plan one read of the requested bytes, extended up to `reach_position` if possible.

        The plan uses shared chunks instead if the first chunk is cached and the range is not.
        """
        reach_position = min(reach_position, position + self._most_bytes)
        asked_bytes = min(max(fetch.max_bytes, _RANGE_MIN_BYTES), self._max_requested_bytes)
        end_position = max(reach_position, position + asked_bytes)
        span = self._parts.span(metadata, position, end_position)
        chunk_key = self._parts.known_chunk_key(metadata, position)
        if chunk_key is not None and self._has_chunk(chunk_key) and not self._has_chunk(span.key):
            return self.plan_chunks(fetch, metadata, position, max(reach_position, position + 1))
        requests = self._with_indexes(fetch, metadata, [span])
        return ReadPlan(requests=requests, end_position=end_position)

    def plan_chunks(
        self,
        fetch: SliceRequest,
        metadata: RemoteLogSegmentMetadata,
        position: int,
        end_position: int,
    ) -> ReadPlan:
        """Plan the chunks of [position, end_position), and optional chunks up to `max_bytes`."""
        first = self._parts.chunk_index(metadata, position)
        last = self._parts.chunk_index(metadata, end_position - 1)
        limit_position = min(position + fetch.max_bytes, metadata.segment_size_bytes)
        requests = [self._parts.chunk(metadata, index) for index in range(first, last + 1)]
        following = range(last + 1, self._parts.chunk_index(metadata, limit_position - 1) + 1)
        return ReadPlan(
            requests=self._with_indexes(fetch, metadata, requests),
            end_position=end_position,
            following=self._parts.chunk_keys(metadata, following),
        )

    def keys(
        self, fetch: SliceRequest, metadata: RemoteLogSegmentMetadata, position: int
    ) -> tuple[list[ChunkKey], list[ChunkKey]]:
        """Return the required and the optional chunk keys for a read at `position`."""
        first = self._parts.chunk_index(metadata, position)
        limit_position = min(position + fetch.max_bytes, metadata.segment_size_bytes)
        last = self._parts.chunk_index(metadata, limit_position - 1)
        keys = self._parts.chunk_keys(metadata, range(first, last + 1))
        required = [self._parts.indexes_key(metadata)] if fetch.read_committed else []
        return [*required, keys[0]], keys[1:]

    def _with_indexes(
        self,
        fetch: SliceRequest,
        metadata: RemoteLogSegmentMetadata,
        requests: Sequence[ChunkRequest[SegmentPart]],
    ) -> Sequence[ChunkRequest[SegmentPart]]:
        """Add the indexes to read_committed fetches, because they contain aborted transactions."""
        if not fetch.read_committed:
            return requests
        return [self._parts.indexes(metadata), *requests]
