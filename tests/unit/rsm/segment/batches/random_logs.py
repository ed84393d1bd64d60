"""Random logs of a segment, damaged or not, and where to cut them into pieces."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from itertools import pairwise

from crc32c import crc32c
from hypothesis import strategies as st

from rsm.segment.batches.batch import CRC_COVERED_FROM, HEADER_BYTES, MAGIC_POSITION
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import segment_metadata
from tests.segment_builder import (
    build_batch,
    build_control_batch,
    build_legacy_message,
    pack_batch,
    records,
)

# The fields that no CRC covers, and those that a reader also checks itself.
_FIELDS = [(0, ">q"), (8, ">i"), (12, ">i"), (16, ">b"), (23, ">i"), (57, ">i")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomLog:
    """A log, perhaps damaged; the batches that it had, and the edges of its pieces."""

    content: bytes
    offsets: OffsetRange
    lineage: Lineage
    positions: tuple[int, ...]
    base_offsets: tuple[int, ...]
    cuts: tuple[int, ...]

    @property
    def pieces(self) -> list[bytes]:
        edges = [0, *self.cuts, len(self.content)]
        return [self.content[start:end] for start, end in pairwise(edges)]

    def stored(self) -> StoredRange:
        metadata = replace(
            segment_metadata(
                1,
                self.offsets.start_offset,
                self.offsets.end_offset,
                epochs=tuple((each.epoch, each.start_offset) for each in self.lineage.entries),
            ),
            segment_size_bytes=len(self.content),
        )
        return StoredRange(metadata=metadata, offsets=self.offsets)


@st.composite
def random_logs(draw: st.DrawFn) -> RandomLog:
    """Draw batches of all codecs, control batches, empty ones and messages of older versions."""
    offset = start_offset = end_offset = draw(st.sampled_from([0, 7]))
    epochs = [(0, offset)]
    batches: list[bytes] = []
    base_offsets: list[int] = []
    for _ in range(draw(st.integers(1, 8))):
        batch, count = _batch(draw, offset, epochs[-1][0])
        batches.append(batch)
        base_offsets.append(offset)
        end_offset = offset + count
        offset = end_offset + draw(st.sampled_from([0, 0, 3]))  # compaction leaves gaps
        if draw(st.integers(0, 4)) == 0:
            epochs.append((epochs[-1][0] + draw(st.integers(1, 3)), offset))
    starts = [0]
    for batch in batches:
        starts.append(starts[-1] + len(batch))
    content = _damaged(draw, bytearray(b"".join(batches)), starts[:-1])
    return RandomLog(
        content=content,
        offsets=OffsetRange(start_offset=start_offset, end_offset=end_offset),
        lineage=Lineage.of(*(each for each in epochs if each[1] < end_offset)),
        positions=tuple(starts[:-1]),
        base_offsets=tuple(base_offsets),
        cuts=tuple(sorted(draw(st.lists(st.integers(0, len(content)), max_size=15)))),
    )


def _batch(draw: st.DrawFn, offset: int, epoch: int) -> tuple[bytes, int]:
    """Draw a batch at an offset, and the number of offsets that it takes."""
    kind, count = draw(st.integers(0, 6)), draw(st.integers(1, 5))
    if kind <= 1:
        return build_legacy_message(offset, b"value" * count, magic=kind), 1
    if kind == 2:
        marker = draw(st.sampled_from([ControlType.COMMIT, ControlType.ABORT]))
        return build_control_batch(offset, marker, producer_id=5, leader_epoch=epoch), 1
    if kind == 3:
        last_offset = offset + count - 1
        empty = pack_batch(b"", base_offset=offset, last_offset=last_offset, leader_epoch=epoch)
        return empty, count
    codec = draw(st.sampled_from(list(CompressionType)))
    content = records(count, base_offset=offset, value_bytes=draw(st.integers(20, 300)))
    return build_batch(content, codec=codec, leader_epoch=epoch), count


def _damaged(draw: st.DrawFn, log: bytearray, starts: list[int]) -> bytes:
    kind, position = draw(st.integers(0, 4)), draw(st.sampled_from(starts))
    if kind == 1:
        log[draw(st.integers(0, len(log) - 1))] ^= 1 << draw(st.integers(0, 7))
    elif kind == 2:
        del log[draw(st.integers(1, len(log))) :]
    elif kind == 3:
        log += bytes(draw(st.integers(1, 80)))
    elif kind == 4 and log[position + MAGIC_POSITION] == 2:
        _set_field(log, position, *draw(st.sampled_from(_FIELDS)), draw(st.integers(-9, 99)))
    return bytes(log)


def _set_field(log: bytearray, position: int, field: int, code: str, value: int) -> None:
    """Replace one field of a batch v2, and make its CRC right if its bytes are all there."""
    struct.pack_into(code, log, position + field, value)
    (length,) = struct.unpack_from(">i", log, position + 8)
    end = position + 12 + length
    if end - position >= HEADER_BYTES:
        crc = crc32c(bytes(log[position + CRC_COVERED_FROM : end]))
        struct.pack_into(">I", log, position + 17, crc)
