"""The attributes of objects about their writer (PIP-17's extra metadata)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import ObjectOrigin, SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import copied

ORIGIN = ObjectOrigin(software_version="kafka-rlm/9.9", cluster_id="q1Sh-9_ISia_zwGINzRvyQ")
LAYOUTS = (
    BlockV1Layout(origin=ORIGIN),
    RawLayout(origin=ORIGIN),
    BlockV2Layout(origin=ORIGIN),
    ChunkedLayout(max_chunk_bytes=100, origin=ORIGIN),
)


def attributes_of(storage: ChunkStorage, layout: SegmentLayout) -> list[dict[str, str]]:
    """Return the attributes of a copied segment's objects, in the order of writing."""
    manager = SegmentStorageManager(storage=storage, keys=ObjectKeys(), layouts=[layout])
    metadata = copied(manager)
    return [dict(storage.info(stored.key).attributes) for stored in metadata.objects]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: each.name)
def test_copy_when_attributes_are_free_then_every_object_says_its_origin(
    layout: SegmentLayout,
) -> None:
    version_key = {
        "block_v1": "s3managedledgeroffloadersoftwareversion",
        "block_v2": "s3managedledgeroffloadersoftwareversion",
        "raw": "softwareversion",
        "chunked": "softwareversion",
    }[layout.name]
    origin = {version_key: "kafka-rlm/9.9", "kafkaclusterid": "q1Sh-9_ISia_zwGINzRvyQ"}

    found = attributes_of(MemoryChunkStorage(wall_ms=lambda: 0), layout)

    assert [origin.items() <= attributes.items() for attributes in found] == [True] * len(found)


@pytest.mark.parametrize(("layout", "files"), [(LAYOUTS[0], 5), (LAYOUTS[1], 2), (LAYOUTS[2], 5)])
def test_copy_when_attributes_cost_a_file_then_only_those_that_pulsar_needs(
    tmp_path: Path, layout: SegmentLayout, files: int
) -> None:
    """Two more files would be synced for each segment in `raw`."""
    found = attributes_of(FilesystemChunkStorage(tmp_path), layout)

    assert found[-1] == {}
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == files
