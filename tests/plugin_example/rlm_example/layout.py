"""A layout like `raw`, with a label on each object.

rsm.config.layout=rlm_example.layout:LabelledLayout
rsm.config.layout.label=blue
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKey
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import LocatedBytes, ObjectContent, SegmentLayout, SegmentObjects
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange


class LabelledLayout(SegmentLayout):
    """Setting: `label`, the value of each object's attribute `label`; by default empty."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._label = settings.get("label", "")
        self._raw = RawLayout()

    @property
    def name(self) -> str:
        """The name in the records of segments; it must never change."""
        return "labelled"

    @property
    def holds_empty_logs(self) -> bool:
        return True

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return self._raw.object_keys(segment_id, base_offset)

    def contents(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData
    ) -> Generator[ObjectContent, StoredObject, None]:
        contents = self._raw.contents(metadata, data)
        content = next(contents)
        while True:
            labels = {**content.inline_attributes, "label": self._label}
            stored = yield replace(content, inline_attributes=labels)
            try:
                content = contents.send(stored)
            except StopIteration:
                return

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        return self._raw.locate(metadata, positions, objects)

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        return self._raw.companion_object(metadata)

    def decode_companion(self, content: bytes) -> Companion:
        return self._raw.decode_companion(content)
