"""The parts of segments that are read at once."""

from __future__ import annotations

import pytest

from rlm.remote_read.segment_division import SegmentDivision
from rlm.remote_read.segment_parts import SegmentParts
from rsm.cache.chunk_buffers import ChunkBuffers
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from tests.unit.rlm.remote_read.remote_world import RemoteWorld, segment_of


class ShortManager(SegmentStorageManager):
    """Gives a byte less than it was asked for."""

    def fetch_log_segment_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, target: memoryview
    ) -> int:
        return super().fetch_log_segment_into(metadata, positions, target) - 1


def test_chunk_when_not_all_of_it_was_read_then_corrupt() -> None:
    """The rest of its memory may be what another client has read."""
    world = RemoteWorld()
    world.claim()
    metadata = world.store(segment_of(0))
    parts = SegmentParts(
        ShortManager(storage=world.objects, keys=ObjectKeys(), layouts=[RawLayout()]),
        division=SegmentDivision(
            least_bytes=16_384, most_bytes=16_384, share_bytes=lambda: 1 << 20
        ),
        buffers=ChunkBuffers(kept_bytes=1 << 20),
        clock=world.clock,
        peek=lambda _: None,
    )

    with pytest.raises(CorruptError, match="shorter"):
        parts.chunk(metadata, 0).load()
