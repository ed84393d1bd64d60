"""Stores a streamed segment as Pulsar's streaming offload does (layout `block_v2`, PIP-76). Pure.

Each segment is three objects, written in this order: the data object in blocks, the index object,
and the companion. The companion's content is that of `.meta` in the layout `raw`. A ledger is a
file of the log; its id is the file's base offset. An entry is a record batch; its id is its ordinal
in the file. One segment may have several ledgers, and one ledger may be in several segments.

Pulsar's format has no field for log positions. They are a property of each ledger's info in the
index object: other readers ignore the property, and it uses no field number that Pulsar may assign
later. If the companion contained the positions, each reader would need a second object.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass

from rsm.layout.block_v2.block_stream import DEFAULT_STREAM_BLOCK_BYTES
from rsm.layout.block_v2.ledger_stream import LedgerStream
from rsm.layout.block_v2.stream_index import (
    StreamedLedger,
    decode_stream_index,
    encode_stream_index,
)
from rsm.layout.blocks.block_directory import BlockDirectory
from rsm.layout.blocks.block_objects import BlockEncoding, BlockObjects
from rsm.layout.blocks.block_sequence import corrupt_index
from rsm.layout.blocks.log_directory import LogDirectory, locate_log
from rsm.layout.blocks.log_points import CUSTOM_KEY, LedgerExtent, LogPoints
from rsm.layout.companion import Companion, decode_companion
from rsm.layout.keys import LedgerPart, StreamedKey
from rsm.layout.segment_layout import (
    LocatedBytes,
    LogToWrite,
    ObjectOrigin,
    SegmentEncoding,
    SegmentLayout,
    SegmentObjects,
)
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange

NAME = "block_v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockV2Layout(SegmentLayout):
    """Writes blocks of `block_bytes`, and reads blocks of any size.

    New objects carry `origin` as attributes.
    """

    block_bytes: int = DEFAULT_STREAM_BLOCK_BYTES
    origin: ObjectOrigin | None = None

    @property
    def name(self) -> str:
        return NAME

    @property
    def can_store_empty_logs(self) -> bool:
        return False  # An index has at least one ledger with an entry.

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[StreamedKey, ...]:
        return tuple(
            StreamedKey(segment_id=segment_id, part=part)
            for part in (LedgerPart.DATA, LedgerPart.INDEX, LedgerPart.COMPANION)
        )

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        """Return the objects' contents. Each block is buffered until it is complete."""
        source = LedgerStream(log.content, log.ledgers, block_bytes=self.block_bytes)
        encoding = BlockEncoding(
            data=source, index=lambda _metadata: encode_stream_index(source.index())
        )
        return encoding.of(log, NAME, self.origin)

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        return locate_log(metadata, positions, objects, decode_directory)

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        return BlockObjects.of(metadata, NAME).companion

    def decode_companion(self, content: bytes) -> Companion:
        return decode_companion(content)


def decode_directory(content: bytes, name: str, index_name: str) -> LogDirectory:
    """Decode an index object. Raises CorruptError if it is invalid or lacks log points."""
    index = decode_stream_index(content, name=index_name)
    ledgers = [_directory_of(each, name, index_name) for each in index.ledgers]
    return LogDirectory(ledgers, data_bytes=index.data_bytes)


def _directory_of(ledger: StreamedLedger, name: str, index_name: str) -> BlockDirectory:
    info = ledger.info
    if not info.entry_count or not info.size_bytes:
        found = f"{info.entry_count} entries, {info.size_bytes} bytes"
        expected = "the number of entries and their length"
        message = "the ledger info is invalid: it lacks the ledger's extent"
        raise corrupt_index(message, index_name, ledger.info_position, expected, found)
    extent = LedgerExtent(
        blocks=ledger.blocks,
        end_entry_id=info.entry_count,
        log_bytes=info.size_bytes,
        index_name=index_name,
        index_position=ledger.info_position,
    )
    text = dict(info.properties).get(CUSTOM_KEY)
    try:
        encoded = None if text is None else b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise extent.corrupt("the log points are not base64", "base64", "other text") from None
    points = LogPoints.decode(encoded, extent)
    return BlockDirectory(extent, points, header_bytes=ledger.header_bytes, name=name)
