"""What to read of a segment for a fetch: chunks that others share, or a span of its own. Pure.

Who reads on is given chunks: what follows them is read ahead, and what one has read serves others.
Who looks at a place for the first time waits for the store, so it waits for as little as answers
it. Must not know offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.gateway.fetch.remote_slice import SliceRequest
from rlm.remote_read.segment_parts import SegmentPart, SegmentParts
from rsm.cache.chunk_lease import ChunkRequest
from rsm.cache.chunk_table import ChunkKey
from rsm.segment.metadata import RemoteLogSegmentMetadata

# The least that is read for a look.
_LEAST_LOOK_BYTES = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """`requests` must be there, and give the log up to `end_position`.

    `following` are the chunks behind them that may be.
    """

    requests: Sequence[ChunkRequest[SegmentPart]]
    end_position: int
    following: Sequence[ChunkKey] = ()


class ReadPlans:
    """Thread-safe. `holds`: whether a chunk is in memory or being read.

    A look reads no more than `most_asked_bytes` of what is asked for, and `most_bytes` in all.
    """

    def __init__(
        self,
        parts: SegmentParts,
        holds: Callable[[ChunkKey], bool],
        *,
        most_asked_bytes: int,
        most_bytes: int,
    ) -> None:
        self._parts = parts
        self._holds = holds
        self._most_asked_bytes = most_asked_bytes
        self._most_bytes = most_bytes

    def look(
        self,
        fetch: SliceRequest,
        metadata: RemoteLogSegmentMetadata,
        position: int,
        reach_position: int = 0,
    ) -> ReadPlan:
        """One read of as much as is asked for, and up to `reach_position`, unless that is far.

        Of the chunks there, if somebody else reads them and nobody has read just this.
        """
        reach_position = min(reach_position, position + self._most_bytes)
        asked_bytes = min(max(fetch.max_bytes, _LEAST_LOOK_BYTES), self._most_asked_bytes)
        end_position = max(reach_position, position + asked_bytes)
        span = self._parts.span(metadata, position, end_position)
        chunk_key = self._parts.known_chunk_key(metadata, position)
        if chunk_key is not None and self._holds(chunk_key) and not self._holds(span.key):
            return self.chunks(fetch, metadata, position, max(reach_position, position + 1))
        requests = self._with_indexes(fetch, metadata, [span])
        return ReadPlan(requests=requests, end_position=end_position)

    def chunks(
        self,
        fetch: SliceRequest,
        metadata: RemoteLogSegmentMetadata,
        position: int,
        end_position: int,
    ) -> ReadPlan:
        """The chunks of [position, end_position), and of as much as is asked for behind it."""
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
        """What `chunks` would read for the byte at `position`, and what may follow: keys alone."""
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
        """With what tells aborted transactions, where they are asked for."""
        if not fetch.read_committed:
            return requests
        return [self._parts.indexes(metadata), *requests]
