"""The parts of segments that are read at once."""

from __future__ import annotations

import pytest

from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.segment_division import SegmentDivision
from rlm.remote_read.segment_parts import SegmentParts
from rsm.cache.chunk_buffers import ChunkBuffers
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.read.segment_scan import ScanSettings
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType
from tests.remote_world import (
    TIP,
    InlineExecutor,
    RemoteWorld,
    bytes_of,
    segment_of,
)

MIB = 1 << 20


class ShortManager(SegmentStorageManager):
    """Returns one byte less than requested."""

    def fetch_log_segment_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, target: memoryview
    ) -> int:
        return super().fetch_log_segment_into(metadata, positions, target) - 1


class CustomManager(SegmentStorageManager):
    """Records the custom metadata of each segment that is read."""

    def __init__(self, world: RemoteWorld) -> None:
        super().__init__(storage=world.objects, keys=ObjectKeys(), layouts=[RawLayout()])
        self.given: set[bytes] = set()

    def fetch_log_segment_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, target: memoryview
    ) -> int:
        self.given.add(metadata.custom_metadata)
        return super().fetch_log_segment_into(metadata, positions, target)

    def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        self.given.add(metadata.custom_metadata)
        return super().fetch_index(metadata, index_type)


def test_scan_when_the_segment_has_custom_metadata_then_every_read_gives_it_back() -> None:
    """KIP-917: the reader's process gets the custom metadata from the metadata topic."""
    world = RemoteWorld()
    world.claim()
    segment = segment_of(0)
    world.store(segment, custom_metadata=b"bucket-7")
    manager = CustomManager(world)
    reader = RemoteLogReader(world.connect(), manager, InlineExecutor(), ScanSettings())

    content = bytes_of(list(reader.scan(TIP, 5)))

    assert segment.log.endswith(content)
    assert manager.given == {b"bucket-7"}


@pytest.mark.parametrize("manager_type", [SegmentStorageManager, ShortManager])
def test_chunk_when_not_all_of_it_was_read_then_corrupt_and_its_memory_is_free(
    manager_type: type[SegmentStorageManager],
) -> None:
    """Its memory may have another client's data, and an error object lives long."""
    world = RemoteWorld()
    world.claim()
    metadata = world.store(segment_of(0, batch_count=200))
    if manager_type is SegmentStorageManager:
        world.rewrite(metadata.objects[0].key, b"x" * MIB)
    buffers = ChunkBuffers(budget_bytes=64 * MIB)
    parts = SegmentParts(
        manager_type(storage=world.objects, keys=ObjectKeys(), layouts=[RawLayout()]),
        division=SegmentDivision(
            least_bytes=2 * MIB, most_bytes=2 * MIB, share_bytes=lambda: 64 * MIB
        ),
        buffers=buffers,
        clock=world.clock,
        peek=lambda _: None,
    )

    with pytest.raises(CorruptError, match="shorter") as kept:
        parts.chunk(metadata, 0).load()

    assert kept.value.__traceback__ is not None
    assert buffers.free_bytes == 2 * MIB
