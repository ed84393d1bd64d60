"""A layout like `raw`, with a label on each object.

rsm.config.layout=rlm_example.layout:LabeledLayout
rsm.config.layout.label=blue
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKey
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import (
    LocatedBytes,
    LogToWrite,
    ObjectContent,
    SegmentEncoding,
    SegmentLayout,
    SegmentObjects,
)
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange


class LabeledLayout(SegmentLayout):
    """The layout `raw` with labels.

    Setting: `label`, an attribute of each object; empty by default.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._label = settings.get("label", "")
        self._raw = RawLayout()

    @property
    def name(self) -> str:
        """The layout's name in the records of segments; it must never change."""
        return "labeled"

    @property
    def can_store_empty_logs(self) -> bool:
        return True

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return self._raw.object_keys(segment_id, base_offset)

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        encoding = self._raw.encoding(log)

        def closing(
            metadata: RemoteLogSegmentMetadata, companions: SegmentCompanions
        ) -> Generator[ObjectContent, StoredObject, None]:
            contents = encoding.closing(metadata, companions)
            content = next(contents)
            while True:
                stored = yield self._labeled(content)
                try:
                    content = contents.send(stored)
                except StopIteration:
                    return

        return SegmentEncoding(log_object=self._labeled(encoding.log_object), closing=closing)

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        return self._raw.locate(metadata, positions, objects)

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        return self._raw.companion_object(metadata)

    def decode_companion(self, content: bytes) -> Companion:
        return self._raw.decode_companion(content)

    def _labeled(self, content: ObjectContent) -> ObjectContent:
        labels = {**content.inline_attributes, "label": self._label}
        return replace(content, inline_attributes=labels)
