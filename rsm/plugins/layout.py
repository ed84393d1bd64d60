"""A plug-in's layout: its errors are mapped and counted. It runs in the caller's thread."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from rsm.layout.companion import Companion
from rsm.layout.keys import LedgerKey, ObjectKey
from rsm.layout.segment_layout import LocatedBytes, ObjectContent, SegmentLayout, SegmentObjects
from rsm.plugins.calls import CallWatch, PluginCalls
from rsm.plugins.given import CountedSource, MappedSource
from rsm.plugins.results import require_type
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange


class PluginLayout(SegmentLayout):
    """Passes each call on to `inner`. A layout is pure, so its calls have no time limit."""

    def __init__(self, inner: SegmentLayout, calls: PluginCalls) -> None:
        """Raise RetriableError if the plug-in does not know its name."""
        self._inner = inner
        self._calls = calls
        with calls.mapped("name"):
            self._name = require_type(inner.name, str)
        with calls.mapped("holds_empty_logs"):
            self._holds_empty_logs = require_type(inner.holds_empty_logs, bool)

    @property
    def name(self) -> str:
        return self._name

    @property
    def holds_empty_logs(self) -> bool:
        return self._holds_empty_logs

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey | LedgerKey, ...]:
        with self._calls.mapped("object_keys"):
            found = require_type(self._inner.object_keys(segment_id, base_offset), tuple)
            if not found or any(
                each.segment_id != segment_id or each.base_offset != base_offset for each in found
            ):
                raise ValueError("not keys of this segment")
            return found

    def contents(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData
    ) -> Generator[ObjectContent, StoredObject, None]:
        """Raise CorruptError if the contents are not those of the objects, or leave out the log."""
        log = CountedSource(source=data.log, watch=CallWatch())
        contents = self._inner.contents(metadata, replace(data, log=log))
        content = self._next(contents, None)
        for planned in metadata.objects:
            if content is None or content.key != planned.key:
                raise _not_planned(metadata)
            stored = yield content
            content = self._next(contents, stored)
        if content is not None:
            raise _not_planned(metadata)
        if log.read.length_bytes != data.log.length_bytes:
            raise CorruptError(
                "plug-in did not read the log that it was given",
                segment_id=metadata.segment_id,
                length_bytes=data.log.length_bytes,
                read_bytes=log.read.length_bytes,
            )

    def _next(
        self,
        contents: Generator[ObjectContent, StoredObject, None],
        stored: StoredObject | None,
    ) -> ObjectContent | None:
        """Return the next content, whose source is mapped too; None at the end."""
        with self._calls.mapped("contents"):
            try:
                found = next(contents) if stored is None else contents.send(stored)
            except StopIteration:
                return None
            source = MappedSource(
                source=require_type(found, ObjectContent).source, calls=self._calls
            )
            return replace(found, source=source)

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        with self._calls.mapped("locate"):
            found = require_type(self._inner.locate(metadata, positions, objects), LocatedBytes)
        join = found.join
        if join is None:
            return found

        def mapped_join(pieces: Sequence[bytes]) -> bytes:
            with self._calls.mapped("join"):
                return require_type(join(pieces), bytes)

        return replace(found, join=mapped_join)

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        with self._calls.mapped("companion_object"):
            return require_type(self._inner.companion_object(metadata), StoredObject)

    def decode_companion(self, content: bytes) -> Companion:
        with self._calls.mapped("decode_companion"):
            return require_type(self._inner.decode_companion(content), Companion)


def _not_planned(metadata: RemoteLogSegmentMetadata) -> CorruptError:
    return CorruptError(
        "plug-in has contents of other objects than those planned", segment_id=metadata.segment_id
    )
