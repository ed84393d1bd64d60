"""Layout `block_v1`: a log segment as a ledger that Pulsar offloaded (PIP-17).

Each segment is three objects, written in this order: the data object in blocks, the index object,
and the companion, with the content of the layout `raw`'s `.meta`. The ledger is the log
segment, its id the base offset; an entry is a record batch, numbered from 0. The index object has
the positions of batches, so that locating bytes takes one lookup. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rsm.layout.block_v1.block_directory import BlockDirectory, EntryRun
from rsm.layout.block_v1.block_format import DEFAULT_BLOCK_BYTES
from rsm.layout.block_v1.block_index import BlockIndex, encode_index
from rsm.layout.block_v1.block_log import BlockedLog
from rsm.layout.block_v1.block_plan import indexed
from rsm.layout.block_v1.divided_log import DividedLog, divide_log
from rsm.layout.block_v1.ledger_attributes import SOFTWARE_VERSION_KEY, Role, ledger_attributes
from rsm.layout.block_v1.ledger_metadata import LedgerMetadata
from rsm.layout.block_v1.log_points import CUSTOM_KEY, LogPoint
from rsm.layout.block_v1.streamed_log import StreamedLog
from rsm.layout.companion import Companion, decode_companion, encode_companion
from rsm.layout.keys import LedgerKey, LedgerPart
from rsm.layout.segment_layout import (
    LocatedBytes,
    LogToWrite,
    ObjectContent,
    ObjectOrigin,
    ObjectRange,
    SegmentEncoding,
    SegmentLayout,
    SegmentObjects,
    record_stored,
)
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BytesSource, ContentSource, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange

NAME = "block_v1"

# From this length on, ranges do not depend on noted positions, so that caches of ranges hit. Noted
# positions would save less than an eighth of such reads.
_SAME_RANGES_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockV1Layout(SegmentLayout):
    """Writes blocks of `block_bytes`, and reads any. New objects carry `origin` as attributes."""

    block_bytes: int = DEFAULT_BLOCK_BYTES
    origin: ObjectOrigin | None = None

    @property
    def name(self) -> str:
        return NAME

    @property
    def holds_empty_logs(self) -> bool:
        return False  # an offloaded ledger has at least one entry

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[LedgerKey, ...]:
        return tuple(
            LedgerKey(segment_id=segment_id, base_offset=base_offset, part=part)
            for part in (LedgerPart.DATA, LedgerPart.INDEX, LedgerPart.COMPANION)
        )

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        """Return the contents. A block begins with its length, so it must be known by then.

        With the log's batches, the blocks are planned before the first byte, and nothing is
        buffered. Without them, each block is buffered until the next one begins.
        """
        origin = self.origin.attributes(version_key=SOFTWARE_VERSION_KEY) if self.origin else {}
        source: ContentSource
        if log.batches is None:
            source = StreamedLog(log.content, block_bytes=self.block_bytes)
            divided = source.divided
        else:
            planned = divide_log(log.batches(), block_bytes=self.block_bytes)
            source = BlockedLog(log=log.content, blocks=planned.blocks)

            def divided() -> DividedLog:
                return planned

        return SegmentEncoding(
            log_object=ObjectContent(
                key=_SegmentObjects.of(log).data.key,
                source=source,
                attributes=_attributes(log.segment_id, Role.DATA, origin),
            ),
            closing=partial(_closing, divided, origin),
        )

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        end_position = min(positions.end_position, metadata.segment_size_bytes)
        if positions.start_position >= end_position:
            return LocatedBytes(ranges=())
        positions = ByteRange(start_position=positions.start_position, end_position=end_position)
        stored = _SegmentObjects.of(metadata)
        key = stored.data.key
        directory = objects.decoded(
            stored.index,
            partial(BlockDirectory.decode, name=key, index_name=stored.index.key),
        )
        _require_same_log(metadata, stored, directory)
        known = (
            objects.floor(key, positions.start_position)
            if len(positions) < _SAME_RANGES_BYTES
            else None
        )
        runs = directory.runs(
            positions, None if known is None else LogPoint(log_position=known[0], entry_id=known[1])
        )
        reading = _Reading(directory=directory, runs=runs, positions=positions)
        return LocatedBytes(
            ranges=tuple(ObjectRange(key=key, positions=run.positions) for run in runs),
            join=partial(reading.join, note=partial(objects.note, key)),
        )

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        return _SegmentObjects.of(metadata).companion

    def decode_companion(self, content: bytes) -> Companion:
        return decode_companion(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SegmentObjects:
    """A segment's objects by role, in any order of the metadata."""

    data: StoredObject
    index: StoredObject
    companion: StoredObject

    @classmethod
    def of(cls, segment: RemoteLogSegmentMetadata | LogToWrite) -> _SegmentObjects:
        found: dict[LedgerPart, StoredObject] = {}
        for stored in segment.objects:
            part = next(p for p in reversed(LedgerPart) if stored.key.endswith(p.value))
            found[part] = stored
        if len(segment.objects) != len(LedgerPart) or found.keys() != set(LedgerPart):
            raise CorruptError(
                "a block_v1 segment must have three objects", segment_id=segment.segment_id
            )
        return cls(
            data=found[LedgerPart.DATA],
            index=found[LedgerPart.INDEX],
            companion=found[LedgerPart.COMPANION],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One read of a segment's log, after its bytes were located."""

    directory: BlockDirectory
    runs: Sequence[EntryRun]
    positions: ByteRange

    def join(self, pieces: Sequence[bytes], note: Callable[[int, int], None]) -> bytes:
        """Return the log's bytes; note where a sequential read continues."""
        taken: list[memoryview] = []
        for run, piece in zip(self.runs, pieces, strict=True):
            batches = self.directory.batches(run, piece)
            taken.extend(batches.cut(self.positions))
            note(batches.last.log_position, batches.last.entry_id)
        return b"".join(taken)


def _closing(
    divided: Callable[[], DividedLog],
    origin: Mapping[str, str],
    metadata: RemoteLogSegmentMetadata,
    companions: SegmentCompanions,
) -> Generator[ObjectContent, StoredObject, None]:
    objects = _SegmentObjects.of(metadata)
    stored = yield ObjectContent(
        key=objects.index.key,
        source=BytesSource(content=encode_index(_index(metadata, divided()))),
        attributes=_attributes(metadata.segment_id, Role.INDEX, origin),
    )
    record = Companion(metadata=record_stored(metadata, stored), companions=companions)
    yield ObjectContent(
        key=objects.companion.key,
        source=BytesSource(content=encode_companion(record)),
        inline_attributes=origin,
    )


def _attributes(
    segment_id: RemoteLogSegmentId, role: Role, origin: Mapping[str, str]
) -> Mapping[str, str]:
    partition = segment_id.topic_id_partition
    name = f"{partition.topic}-{partition.partition}"
    return ledger_attributes(role, {"managedledgername": name, **origin})


def _index(metadata: RemoteLogSegmentMetadata, divided: DividedLog) -> BlockIndex:
    return BlockIndex(
        metadata=LedgerMetadata(
            length_bytes=metadata.segment_size_bytes,
            last_entry_id=divided.entry_count - 1,
            custom=((CUSTOM_KEY, divided.log_points),),
        ),
        data_bytes=divided.data_bytes,
        blocks=indexed(divided.blocks),
    )


def _require_same_log(
    metadata: RemoteLogSegmentMetadata, stored: _SegmentObjects, directory: BlockDirectory
) -> None:
    found = (directory.log_bytes, directory.data_bytes)
    expected = (metadata.segment_size_bytes, stored.data.length_bytes)
    if found != (expected[0], found[1] if expected[1] is None else expected[1]):
        raise CorruptError(
            "the index belongs to another segment",
            object=stored.index.key,
            position=0,
            expected=expected,
            found=found,
        )
