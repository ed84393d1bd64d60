"""Implements RemoteStorageManager with layouts and a chunk storage.

A segment writer (rsm.segment_writer) decides the order in which a copy writes objects.
rsm.object_deletion decides the order in which they are deleted.

This module writes no metadata events: the caller records objects before the copy and after the
deletion. Memory: each running copy needs the memory of its layout, one piece of its source (1 MiB
by default), and its encoded companion twice. Each read needs its range once; twice if it joins
several pieces or decodes blocks. The cache of companions and indexes is limited to
`decoded_cache_bytes`, counted in encoded lengths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from rsm.layout.companion import checkpoint_bytes
from rsm.layout.keys import ObjectKeys
from rsm.layout.segment_layout import LocatedBytes, SegmentLayout
from rsm.object_check import ObjectCheck
from rsm.object_deletion import delete_segments
from rsm.object_reader import ObjectReader
from rsm.segment.copy_into import copy_into
from rsm.segment.errors import CorruptError, NotFoundError, RetriableError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import AbortedTransaction, LogSegmentData, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.segment_writer import ObjectsWriter
from rsm.spi import (
    CopiedSegment,
    CopyAttempt,
    IndexType,
    ObjectFault,
    PlannedObjects,
    RemoteStorageManager,
    SegmentWriter,
)
from rsm.storage.chunk_storage import ChunkStorage
from rsm.transfer import ReadBack

_NAMED_KEYS = 16


class SegmentStorageManager(RemoteStorageManager):
    """Stores segments in one store. Thread-safe. `close` also closes the storage.

    Reads segments of all given layouts. A topic may name its layout, also by the class of a
    plug-in: `class_names` maps such classes to names. The default is the first of `layouts`. If
    this choice cannot store empty logs, an empty log gets the first layout that can; at least one
    must. A streamed segment gets the topic's layout if that has chunks, and otherwise
    `stream_layout`, by default the first of `layouts`. With `read_back`, reads each object again
    after the write.
    """

    def __init__(
        self,
        *,
        storage: ChunkStorage,
        keys: ObjectKeys,
        layouts: Sequence[SegmentLayout],
        class_names: Mapping[str, str] | None = None,
        stream_layout: SegmentLayout | None = None,
        read_back: ReadBack | None = None,
        decoded_cache_bytes: int = 64 << 20,
    ) -> None:
        self._storage = storage
        self._keys = keys
        self._stream_layout = layouts[0] if stream_layout is None else stream_layout
        self._layouts = {each.name: each for each in (*layouts, self._stream_layout)}
        self._class_names = {} if class_names is None else class_names
        self._read_back = read_back
        self._objects = ObjectReader(storage, decoded_bytes=decoded_cache_bytes)

    @property
    def can_reuse_unfinished(self) -> bool:
        return self._storage.capabilities.has_reusable_uploads

    def plan_objects(
        self, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        layout = next(
            each for each in self._layouts.values() if size_bytes or each.can_store_empty_logs
        )
        return self._planned(layout, segment_id, base_offset, size_bytes)

    def plan_objects_in(
        self, layout: str, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        chosen = self._layout_called(layout)
        if chosen is None:
            raise UnsupportedError(
                "the topic's layout is unknown",
                segment_id=segment_id,
                layout=layout,
                known=(*self._layouts, *self._class_names),
                advice="Add it to rsm.config.layout and restart the manager, or change the "
                "topic's layout",
            )
        if not size_bytes and not chosen.can_store_empty_logs:
            return self.plan_objects(segment_id, base_offset, size_bytes=size_bytes)
        return self._planned(chosen, segment_id, base_offset, size_bytes)

    def plan_streamed_objects(
        self,
        segment_id: RemoteLogSegmentId,
        base_offset: int,
        *,
        most_bytes: int,
        layout: str | None = None,
    ) -> PlannedObjects:
        chosen = (
            next(iter(self._layouts.values())) if layout is None else self._layout_called(layout)
        )
        if chosen is None or chosen.chunk_bytes is None:
            chosen = self._stream_layout
        return self._planned(chosen, segment_id, base_offset, most_bytes)

    def open_segment_writer(
        self,
        segment_id: RemoteLogSegmentId,
        planned: PlannedObjects,
        attempt: CopyAttempt,
    ) -> SegmentWriter:
        return ObjectsWriter(
            self._storage,
            self._layout_named(planned.layout, segment_id),
            segment_id=segment_id,
            objects=planned.objects,
            attempt=attempt,
            read_back=self._read_back,
        )

    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        _require_same_segment(metadata, data)
        writer = self.open_segment_writer(
            metadata.segment_id,
            PlannedObjects(layout=metadata.layout, objects=metadata.objects),
            attempt,
        )
        writer.write(data.log, data.batches)
        return writer.seal(metadata, data.companions)

    def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> bytes:
        located = self._layout_of(metadata).locate(metadata, positions, self._objects)
        return self._joined(located)

    def fetch_log_segment_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, target: memoryview
    ) -> int:
        located = self._layout_of(metadata).locate(metadata, positions, self._objects)
        if located.join is not None:
            return copy_into(target, self._joined(located))
        read_bytes = 0
        for each in located.ranges:
            self._objects.read_into(each.key, each.positions, target[read_bytes:])
            read_bytes += len(each.positions)
        return read_bytes

    def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        content = _index_bytes(self._companions_of(metadata), index_type)
        if content is None:
            raise NotFoundError(
                "the segment has no index of this type",
                segment_id=metadata.segment_id,
                index_type=index_type.value,
            )
        return content

    def fetch_aborted_transactions(
        self, metadata: RemoteLogSegmentMetadata
    ) -> tuple[AbortedTransaction, ...]:
        return self._companions_of(metadata).aborted_transactions

    def check_objects(
        self, metadata: RemoteLogSegmentMetadata, *, read: bool, attempt: CopyAttempt
    ) -> tuple[ObjectFault, ...]:
        check = ObjectCheck(self._storage, read=read, attempt=attempt)
        return tuple(fault for stored in metadata.objects if (fault := check.fault_of(stored)))

    def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        self.forget(metadata.object_keys)
        (failures,) = delete_segments(self._storage, [metadata])
        if failures:
            first = next(iter(failures.values()))
            raise RetriableError(
                "cannot delete all objects of the segment",
                segment_id=metadata.segment_id,
                keys=tuple(islice(failures, _NAMED_KEYS)),
                count=len(failures),
                reason=first,
            ) from first

    def kept_objects(self) -> Collection[str]:
        return self._objects.kept()

    def forget(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._objects.forget(key)

    def close(self) -> None:
        self._storage.close()

    def _layout_called(self, name: str) -> SegmentLayout | None:
        """Return a layout by its name or its plug-in's class; None if it is unknown."""
        return self._layouts.get(self._class_names.get(name, name))

    def _planned(
        self,
        layout: SegmentLayout,
        segment_id: RemoteLogSegmentId,
        base_offset: int,
        log_bytes: int,
    ) -> PlannedObjects:
        objects = layout.plan(self._keys, segment_id, base_offset, log_bytes=log_bytes)
        return PlannedObjects(layout=layout.name, objects=objects)

    def _joined(self, located: LocatedBytes) -> bytes:
        pieces = [self._objects.read(each.key, each.positions) for each in located.ranges]
        return b"".join(pieces) if located.join is None else located.join(pieces)

    def _companions_of(self, metadata: RemoteLogSegmentMetadata) -> SegmentCompanions:
        layout = self._layout_of(metadata)
        stored = layout.companion_object(metadata)
        companion = self._objects.decoded(stored, layout.decode_companion)
        if companion.metadata.segment_id != metadata.segment_id:
            raise CorruptError(
                "the companion belongs to another segment",
                key=stored.key,
                found=companion.metadata.segment_id,
            )
        return companion.companions

    def _layout_of(self, metadata: RemoteLogSegmentMetadata) -> SegmentLayout:
        return self._layout_named(metadata.layout, metadata.segment_id)

    def _layout_named(self, name: str, segment_id: RemoteLogSegmentId) -> SegmentLayout:
        layout = self._layouts.get(name)
        if layout is None:
            raise UnsupportedError(
                "the segment's layout is unknown",
                segment_id=segment_id,
                layout=name,
                known=tuple(self._layouts),
            )
        return layout


def _require_same_segment(metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> None:
    recorded = (metadata.offsets, metadata.segment_size_bytes)
    offered = (data.offsets, data.log.length_bytes)
    if recorded != offered:
        raise CorruptError(
            "the segment to copy differs from its record",
            segment_id=metadata.segment_id,
            recorded=recorded,
            offered=offered,
        )


def _index_bytes(companions: SegmentCompanions, index_type: IndexType) -> bytes | None:
    match index_type:
        case IndexType.OFFSET:
            return companions.offset_index
        case IndexType.TIMESTAMP:
            return companions.time_index
        case IndexType.TRANSACTION:
            return companions.transaction_index
        case IndexType.PRODUCER_SNAPSHOT:
            return companions.producer_snapshot
        case IndexType.LEADER_EPOCH:
            return checkpoint_bytes(companions.lineage)
