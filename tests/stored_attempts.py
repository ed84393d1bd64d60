"""Attempts to store segments, in any layout, in a store without metadata topic and brokers."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from rsm.opening import open_segments
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import (
    AbortedTransaction,
    BytesSource,
)
from rsm.segment.metadata import RemoteLogSegmentMetadata, Writer
from rsm.storage.chunk_storage import ChunkStorage
from rsm.store_settings import SegmentSettings
from tests.log_dir_builder import EPOCH_ZERO
from tests.remote_world import TIP
from tests.segment_builder import BuiltSegment
from tests.segment_storing import planned_segment, store_segment

_CHUNK_BYTES = 4_000


class StoredAttempts:
    """Writes complete attempts to `storage`; a test then removes or changes their objects."""

    def __init__(self, storage: ChunkStorage, *, key_prefix: str = "") -> None:
        self.storage = storage
        self._key_prefix = key_prefix
        self._count = 100

    def store(
        self,
        segment: BuiltSegment,
        *,
        layout: str = "raw",
        lineage: Lineage = EPOCH_ZERO,
        partition: TopicIdPartition = TIP,
        written_ms: int = 0,
        aborted: Sequence[AbortedTransaction] = (),
    ) -> RemoteLogSegmentMetadata:
        """Store a segment as the leader of the lineage's last epoch, under a new id."""
        self._count += 1
        settings = SegmentSettings(
            key_prefix=self._key_prefix, layouts=(layout,), chunk_bytes=_CHUNK_BYTES
        )
        manager = open_segments(settings, self.storage)
        writer = Writer(
            broker_id=1, leader_epoch=lineage.entries[-1].epoch, incarnation=UUID(int=1)
        )
        planned = planned_segment(
            manager,
            segment,
            RemoteLogSegmentId(topic_id_partition=partition, id=UUID(int=self._count)),
            writer=writer,
            lineage=lineage,
            written_ms=written_ms,
        )
        return store_segment(manager, planned, segment, lineage=lineage, aborted=aborted)

    def remove(self, key: str) -> None:
        """Remove an object."""
        self.storage.delete(key)

    def rewrite(self, key: str, content: bytes) -> None:
        """Replace an object by one with this content and without attributes."""
        self.storage.delete(key)
        self.storage.create_with_content(key, BytesSource(content=content))
