"""Logs written from scratch, with everything that a broker's log may contain. Pure.

The segments are small, so that a few kilobytes have every kind of boundary. The last segment of a
log is active; all but the last two are stored and trimmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import cramjam

from rsm.segment.batches.batch import BatchHeader, scan_batches
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType, Record
from tests.segment_builder import (
    build_batch,
    build_control_batch,
    build_legacy_message,
    compress_payload,
    record,
)

BASE_MS = 1_700_000_000_000
_OPEN, _ABORTED, _COMMITTED, _ACROSS = 40, 41, 42, 43


@dataclass(frozen=True, slots=True, kw_only=True)
class CraftedLog:
    """A log; `segments` has the base offset and the bytes of each segment, ascending."""

    segments: tuple[tuple[int, bytes], ...]

    @property
    def content(self) -> bytes:
        """All bytes of the log."""
        return b"".join(data for _, data in self.segments)

    @property
    def headers(self) -> list[BatchHeader]:
        return [header for _, header in scan_batches(memoryview(self.content))]

    @property
    def end_offset(self) -> int:
        return self.headers[-1].next_offset

    @property
    def local_start_offset(self) -> int:
        """Return the broker's log start after the furthest possible trim."""
        return self.segments[-2][0]

    @property
    def last_stable_offset(self) -> int:
        """Return the first offset of an open transaction, or the log's end if none is open."""
        opened: dict[int, int] = {}
        for header in self.headers:
            if header.is_control:
                opened.pop(header.producer_id, None)
            elif header.is_transactional:
                opened.setdefault(header.producer_id, header.base_offset)
        return min(opened.values(), default=self.end_offset)


def every_kind_of_batch() -> CraftedLog:
    """Return a log of two epochs with all codecs, gaps, empty batches, markers, unordered times.

    Gaps are within a segment, at a segment's end, and at the end of the stored log. One transaction
    is aborted wholly in the store, one across the end of the stored log, and one is open.
    """
    return _log(
        (0, [_batch(n * 3, 3, codec=codec) for n, codec in enumerate(CompressionType)]),
        (15, _with_gaps()),
        (40, _with_transactions()),
        (
            60,
            [
                _batch(60, 4, epoch=1, after_ms=90_000),
                _batch(64, 4, epoch=1, producer_id=_ACROSS),
            ],
        ),
        (70, _first_local()),
        (84, _active()),
    )


def older_formats() -> CraftedLog:
    """Return messages of magic 0 and 1, alone and compressed, before current batches."""
    inner = b"".join(
        build_legacy_message(n, b"inner-%d" % n, magic=1, timestamp_ms=BASE_MS + 10 + n)
        for n in range(3)
    )
    wrapper = build_legacy_message(
        8, bytes(cramjam.gzip.compress(inner)), magic=1, timestamp_ms=BASE_MS + 12, attributes=1
    )
    alone = [build_legacy_message(n, b"old-%d" % n, magic=0) for n in range(3)]
    timed = [
        build_legacy_message(n, b"old-%d" % n, magic=1, timestamp_ms=BASE_MS + n)
        for n in range(3, 6)
    ]
    return _log(
        (0, [*alone, *timed, wrapper, _batch(9, 3), _batch(12, 3)]),
        (15, [_batch(15, 2)]),
        (17, [_batch(17, 2)]),
    )


def plain(segment_count: int = 4) -> CraftedLog:
    """Return a log of ten records in each segment, in batches of five."""
    return _log(
        *(
            (base, [_batch(base, 5), _batch(base + 5, 5)])
            for base in range(0, segment_count * 10, 10)
        )
    )


def _with_gaps() -> list[bytes]:
    """Return the batches of offsets 15 to 39: the last one ends at 33, epoch 1 begins at 24."""
    return [
        _batch(15, 3),
        _sparse(18, (19, 21), last_offset=22, epoch=0),
        _batch(24, 2, epoch=1),
        build_batch(
            [],
            base_offset=28,
            last_offset=30,
            leader_epoch=1,
            producer_id=44,
            producer_epoch=0,
            base_sequence=0,
        ),
        _batch(31, 3, epoch=1, after_ms=-500),
    ]


def _with_transactions() -> list[bytes]:
    return [
        _batch(40, 2, epoch=1, producer_id=_ABORTED),
        _batch(42, 2, epoch=1, producer_id=_COMMITTED),
        build_control_batch(
            44, ControlType.ABORT, producer_id=_ABORTED, leader_epoch=1, timestamp_ms=BASE_MS + 44
        ),
        build_control_batch(
            45,
            ControlType.COMMIT,
            producer_id=_COMMITTED,
            leader_epoch=1,
            timestamp_ms=BASE_MS + 45,
        ),
        _batch(46, 6, epoch=1),
    ]


def _first_local() -> list[bytes]:
    return [
        _batch(70, 4, epoch=1),
        _batch(74, 2, epoch=1, producer_id=_ACROSS),
        _batch(80, 3, epoch=1),
        build_control_batch(
            83, ControlType.ABORT, producer_id=_ACROSS, leader_epoch=1, timestamp_ms=BASE_MS + 83
        ),
    ]


def _active() -> list[bytes]:
    return [
        _batch(84, 3, epoch=1),
        _batch(87, 2, epoch=1, producer_id=_OPEN),
        _batch(89, 3, epoch=1),
    ]


def _log(*segments: tuple[int, Sequence[bytes]]) -> CraftedLog:
    return CraftedLog(segments=tuple((base, b"".join(batches)) for base, batches in segments))


def _batch(
    base_offset: int,
    count: int,
    *,
    epoch: int = 0,
    codec: CompressionType = CompressionType.NONE,
    producer_id: int = -1,
    after_ms: int = 0,
) -> bytes:
    """Return a batch whose records are a millisecond apart by offset, plus `after_ms`.

    With a producer id, the batch is transactional.
    """
    return build_batch(
        [_record(offset, after_ms) for offset in range(base_offset, base_offset + count)],
        codec=codec,
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        is_transactional=producer_id >= 0,
        compress=_compressed,
    )


def _compressed(codec: CompressionType, payload: bytes) -> bytes:
    """Compress like Java's clients, which read no LZ4 frames with dependent blocks."""
    if codec is not CompressionType.LZ4:
        return compress_payload(codec, payload)
    block = (0x8000_0000 | len(payload)).to_bytes(4, "little") + payload  # stored uncompressed
    return bytes.fromhex("04224d18604082") + block + bytes(4)


def _sparse(base_offset: int, offsets: Sequence[int], *, last_offset: int, epoch: int) -> bytes:
    """Return a batch from which compaction has removed records."""
    return build_batch(
        [_record(offset, 0) for offset in offsets],
        base_offset=base_offset,
        last_offset=last_offset,
        leader_epoch=epoch,
    )


def _record(offset: int, after_ms: int) -> Record:
    return record(
        offset,
        (b"value-%d" % offset).ljust(40, b"."),
        timestamp_ms=BASE_MS + offset + after_ms,
        headers=[("header", b"%d" % offset)],
    )


def times_around(log: CraftedLog) -> list[int]:
    """Return all timestamps near which the result of a lookup by time may change."""
    edges = chain.from_iterable(
        range(
            min(header.base_timestamp_ms, header.max_timestamp_ms) - 1, header.max_timestamp_ms + 2
        )
        for header in log.headers
        if header.max_timestamp_ms >= 0
    )
    return sorted({0, *(each for each in edges if each >= 0)})
