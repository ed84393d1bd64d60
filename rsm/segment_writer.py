"""Writes the objects of a segment, whose log it gets in pieces or as a whole.

This module alone decides the order of the writes. It writes and verifies one object after the
other, in the layout's order: the log's object or its chunks first, the companion last. It does not
write planned chunks that the log does not reach. On any error it deletes the objects that it may
have written, and raises the error.

A separate thread sends an appended log to the store (rsm.storage.uploads.piece_stream). The
caller's thread writes all other objects.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from rsm.layout.ledger_marks import LedgerMark, LedgerMarks
from rsm.layout.log_chunks import divided
from rsm.layout.segment_layout import (
    LogToWrite,
    ObjectContent,
    SegmentEncoding,
    SegmentLayout,
    record_stored,
)
from rsm.object_deletion import delete_objects
from rsm.segment.errors import AlreadyExistsError, CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import (
    BatchExtents,
    ContentReuse,
    ContentSource,
    SegmentCompanions,
    SizedSource,
)
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject, short_keys
from rsm.spi import CopiedSegment, CopyAttempt, SegmentWriter
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.uploads.piece_stream import PieceStream
from rsm.transfer import ReadBack, put_verified

_log = logging.getLogger(__name__)


class ObjectsWriter(SegmentWriter):
    """Writes one segment's objects to a chunk storage. Not thread-safe."""

    def __init__(
        self,
        storage: ChunkStorage,
        layout: SegmentLayout,
        *,
        segment_id: RemoteLogSegmentId,
        objects: tuple[StoredObject, ...],
        attempt: CopyAttempt,
        read_back: ReadBack | None,
    ) -> None:
        self._storage = storage
        self._layout = layout
        self._segment_id = segment_id
        self._objects = tuple(StoredObject(key=planned.key) for planned in objects)
        keys = [planned.key for planned in objects]
        self._log_keys = keys[: layout.log_count(keys)]
        self._attempt = attempt
        self._read_back = read_back
        self._encoding: SegmentEncoding | None = None
        self._stream: PieceStream[tuple[StoredObject, ...]] | None = None
        self._log_objects: tuple[StoredObject, ...] | None = None
        self._log_bytes = 0
        self._ledgers = LedgerMarks()
        self._reuse: ContentReuse | None = None
        self._written: list[str] = []
        self._error: BaseException | None = None
        self._is_sealed = False

    def begin_ledger(self, ledger_id: int, first_entry_id: int) -> None:
        with self._until_failed():
            self._ledgers.note(
                LedgerMark(
                    log_position=self._log_bytes, ledger_id=ledger_id, first_entry_id=first_entry_id
                )
            )

    def reuse(
        self,
        earlier: Sequence[RemoteLogSegmentMetadata],
        *,
        reused: Callable[[int], None],
        unused: Callable[[UUID], None],
    ) -> None:
        """Reuse the sent bytes of the log's object, unless the layout divides logs into chunks.

        Does not reuse the bytes of segments with another layout.
        """
        if self._layout.chunk_bytes is not None:
            super().reuse(earlier, reused=reused, unused=unused)
            return
        ids = {}
        for each in earlier:
            if each.layout == self._layout.name:
                ids[each.object_keys[0]] = each.segment_id.id
            else:
                unused(each.segment_id.id)
        self._reuse = ContentReuse(
            names=tuple(ids), reused=reused, unused=lambda name: unused(ids[name])
        )

    def end_reuse(self) -> None:
        if self._reuse is not None:
            self._reuse.end_at(self._log_bytes)

    def append(self, log: memoryview) -> None:
        with self._until_failed():
            stream = self._stream or self._open_stream()
            stream.append(log)
            self._log_bytes += len(log)

    def write(self, log: SizedSource, batches: BatchExtents | None = None) -> None:
        with self._until_failed():
            self._log_objects = self._put_log(self._begin(log, batches))
            self._log_bytes = log.length_bytes

    def seal(
        self, metadata: RemoteLogSegmentMetadata, companions: SegmentCompanions
    ) -> CopiedSegment:
        with self._until_failed():
            self._require_record_of_this(metadata)
            others = self._objects[len(self._log_keys) :]
            written = replace(metadata, objects=(*self._end_log(), *others))
            assert self._encoding is not None
            contents = self._encoding.closing(written, companions)
            content = next(contents)
            while True:
                stored = self._put(content)
                written = record_stored(written, stored)
                try:
                    content = contents.send(stored)
                except StopIteration:
                    self._is_sealed = True
                    return CopiedSegment(objects=written.objects)

    def abort(self, reason: BaseException) -> None:
        if self._error is None and not self._is_sealed:
            self._fail(reason)

    @contextmanager
    def _until_failed(self) -> Iterator[None]:
        """Abort if the context fails. Raises an earlier error again; ValueError after the seal."""
        if self._error is not None:
            raise self._error
        if self._is_sealed:
            raise ValueError("the segment is sealed")
        try:
            yield
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        self._error = error
        if self._stream is not None:
            self._stream.abort(error)
        self._discard()

    def _open_stream(self) -> PieceStream[tuple[StoredObject, ...]]:
        """Begin to write the log's objects from the appended pieces."""
        stream = PieceStream[tuple[StoredObject, ...]]()
        content = self._begin(stream, None)
        stream.start(lambda: self._put_log(content), name="segment-writer")
        self._stream = stream
        return stream

    def _begin(self, log: ContentSource, batches: BatchExtents | None) -> ObjectContent:
        if self._encoding is not None:
            raise ValueError("the log is already written")
        self._encoding = self._layout.encoding(
            LogToWrite(
                segment_id=self._segment_id,
                objects=self._objects,
                content=log,
                batches=batches,
                ledgers=self._ledgers,
            )
        )
        return self._encoding.log_object

    def _end_log(self) -> tuple[StoredObject, ...]:
        if self._log_objects is not None:
            return self._log_objects
        stream = self._stream or self._open_stream()
        return stream.finish()

    def _require_record_of_this(self, metadata: RemoteLogSegmentMetadata) -> None:
        recorded = (metadata.segment_id, metadata.segment_size_bytes)
        written = (self._segment_id, self._log_bytes)
        planned = [planned.key for planned in self._objects]
        if recorded != written or list(metadata.object_keys) != planned:
            raise CorruptError(
                "the written segment differs from its record",
                segment_id=self._segment_id,
                recorded=recorded,
                written=written,
            )

    def _put_log(self, content: ObjectContent) -> tuple[StoredObject, ...]:
        """Write the log's object, or its chunks one after the other."""
        chunk_bytes = self._layout.chunk_bytes
        if chunk_bytes is None:
            return (self._put(content, self._reuse),)
        return tuple(self._put(chunk) for chunk in divided(content, self._log_keys, chunk_bytes))

    def _put(self, content: ObjectContent, reuse: ContentReuse | None = None) -> StoredObject:
        """Write and verify an object; add its key to `_written` if the object may exist."""
        self._written.append(content.key)
        attributes = content.attributes
        if self._storage.capabilities.has_inline_attributes:
            attributes = {**content.inline_attributes, **attributes}
        try:
            return put_verified(
                self._storage,
                content.key,
                content.source,
                attempt=self._attempt,
                read_back=self._read_back,
                attributes=attributes,
                reuse=reuse,
            )
        except AlreadyExistsError:
            self._written.remove(content.key)  # Another writer created it, so it must stay.
            raise

    def _discard(self) -> None:
        """Delete the objects of a failed copy if possible; log the keys of remaining objects."""
        left = delete_objects(self._storage, self._written)
        if left:
            _log.warning(
                LogLine(
                    "cannot delete the objects of a failed attempt",
                    segment_id=self._segment_id,
                    keys=",".join(short_keys(tuple(left))),
                )
            )
