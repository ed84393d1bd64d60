"""Tiers topics whose segments have all layouts: a plug-in gives each segment the next layout.

Readers need no plug-in: a segment's metadata names its layout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from rsm.config.choices import StorageManager
from rsm.config.storage import STORAGE_MANAGER_KEY
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.plugins.plugin import PluginSettings
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.spi import PlannedObjects
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.e2e.broker_host import BrokerHost

LAYOUTS: tuple[SegmentLayout, ...] = (
    RawLayout(),
    BlockV2Layout(),
    BlockV1Layout(),
    ChunkedLayout(max_chunk_bytes=500),
)


class MixedLayouts(SegmentStorageManager):
    """A storage manager that plans a partition's segments in each of `LAYOUTS` in turn."""

    def __init__(self, settings: PluginSettings) -> None:
        root = Path(settings["storage.filesystem.root"])
        super().__init__(storage=FilesystemChunkStorage(root), keys=ObjectKeys(), layouts=LAYOUTS)
        self._next_layouts: defaultdict[TopicIdPartition, Iterator[SegmentLayout]] = defaultdict(
            lambda: cycle(LAYOUTS)
        )

    def plan_objects(
        self, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        layout = next(self._next_layouts[segment_id.topic_id_partition])
        objects = layout.plan(ObjectKeys(), segment_id, base_offset, log_bytes=size_bytes)
        return PlannedObjects(layout=layout.name, objects=objects)


@contextmanager
def mixed_layouts(host: BrokerHost) -> Iterator[None]:
    """Make processes that start within the block write all layouts."""
    plugin = f"{MixedLayouts.__module__}:{MixedLayouts.__qualname__}"
    host.set(**{STORAGE_MANAGER_KEY: plugin})
    yield
    host.set(**{STORAGE_MANAGER_KEY: StorageManager.OBJECTS.value})
