"""Stores a log segment as Pulsar stores an offloaded ledger (layout `block_v1`, PIP-17). Pure.

Each segment is three objects, written in this order: the data object in blocks, the index object,
and the companion. The companion's content is that of `.meta` in the layout `raw`. The ledger is the
log segment; its id is the base offset. An entry is a record batch, numbered from 0. The index
object has the positions of some batches, so a reader needs no other object to locate bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rsm.layout.block_v1.block_index import (
    INDEX_HEADER_BYTES,
    BlockIndex,
    decode_index,
    encode_index,
)
from rsm.layout.block_v1.block_log import BlockedLog
from rsm.layout.block_v1.divided_log import DividedLog, divide_log
from rsm.layout.block_v1.streamed_log import StreamedLog
from rsm.layout.blocks.block_directory import BlockDirectory
from rsm.layout.blocks.block_format import DEFAULT_BLOCK_BYTES
from rsm.layout.blocks.block_objects import BlockEncoding, BlockObjects
from rsm.layout.blocks.block_plan import indexed
from rsm.layout.blocks.ledger_metadata import LedgerMetadata
from rsm.layout.blocks.log_directory import LogDirectory, locate_log
from rsm.layout.blocks.log_points import CUSTOM_KEY, LedgerExtent, LogPoints
from rsm.layout.companion import Companion, decode_companion
from rsm.layout.keys import LedgerKey, LedgerPart
from rsm.layout.segment_layout import (
    LocatedBytes,
    LogToWrite,
    ObjectOrigin,
    SegmentEncoding,
    SegmentLayout,
    SegmentObjects,
)
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import ContentSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange

NAME = "block_v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockV1Layout(SegmentLayout):
    """Writes blocks of `block_bytes`, and reads blocks of any size.

    New objects carry `origin` as attributes.
    """

    block_bytes: int = DEFAULT_BLOCK_BYTES
    origin: ObjectOrigin | None = None

    @property
    def name(self) -> str:
        return NAME

    @property
    def can_store_empty_logs(self) -> bool:
        return False  # An offloaded ledger has at least one entry.

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[LedgerKey, ...]:
        return tuple(
            LedgerKey(segment_id=segment_id, base_offset=base_offset, part=part)
            for part in (LedgerPart.DATA, LedgerPart.INDEX, LedgerPart.COMPANION)
        )

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        """Return the objects' contents.

        A block's header contains the block's length. If `log.batches` is set, all blocks are
        planned before the first byte. Otherwise each block is buffered until the next one begins.
        """
        source: ContentSource
        if log.batches is None:
            source = StreamedLog(log.content, block_bytes=self.block_bytes)
            divided = source.divided
        else:
            planned = divide_log(log.batches(), block_bytes=self.block_bytes)
            source = BlockedLog(log=log.content, blocks=planned.blocks)

            def divided() -> DividedLog:
                return planned

        encoding = BlockEncoding(data=source, index=lambda metadata: _index(metadata, divided()))
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
    index = decode_index(content, name=index_name)
    extent = LedgerExtent(
        blocks=index.blocks,
        end_entry_id=index.last_entry_id + 1,
        log_bytes=index.metadata.length_bytes,
        index_name=index_name,
        index_position=INDEX_HEADER_BYTES,
    )
    points = LogPoints.decode(index.metadata.custom_value(CUSTOM_KEY), extent)
    ledger = BlockDirectory(extent, points, header_bytes=index.header_bytes, name=name)
    return LogDirectory([ledger], data_bytes=index.data_bytes)


def _index(metadata: RemoteLogSegmentMetadata, divided: DividedLog) -> bytes:
    index = BlockIndex(
        metadata=LedgerMetadata(
            length_bytes=metadata.segment_size_bytes,
            last_entry_id=divided.entry_count - 1,
            custom=((CUSTOM_KEY, divided.log_points),),
        ),
        data_bytes=divided.data_bytes,
        blocks=indexed(divided.blocks),
    )
    return encode_index(index)
