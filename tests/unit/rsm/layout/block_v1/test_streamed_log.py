from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v1.block_log import BlockedLog
from rsm.layout.block_v1.divided_log import divide_log
from rsm.layout.block_v1.streamed_log import StreamedLog
from rsm.layout.blocks.block_format import MIN_BLOCK_BYTES
from rsm.segment.batches.batch import scan_batches
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.local_segment import PartBounds
from tests.contract.sources import PiecesSource, UnsizedSource, source_of
from tests.segment_builder import pack_batch


def log_of(sizes: list[int]) -> bytes:
    return b"".join(
        pack_batch(bytes([n % 251]) * size, base_offset=1000 + n, last_offset=1000 + n)
        for n, size in enumerate(sizes)
    )


def extents(log: bytes) -> Iterator[tuple[int, int]]:
    for _, header in scan_batches(memoryview(log)):
        yield header.base_offset, header.length_bytes


@given(
    sizes=st.lists(st.sampled_from([0, 7, 100, 400, 140_000]), min_size=1, max_size=20),
    block_bytes=st.sampled_from([MIN_BLOCK_BYTES, 500, 1_500, 300_000]),
    cuts=st.lists(st.integers(0, 400_000), max_size=6),
)
def test_streamed_log_when_passed_in_any_pieces_then_the_blocks_of_the_planned_log(
    sizes: list[int], block_bytes: int, cuts: list[int]
) -> None:
    log = log_of(sizes)
    bounds = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    pieces = tuple(log[a:b] for a, b in pairwise(bounds))
    planned = divide_log(extents(log), block_bytes=block_bytes)
    blocked = BlockedLog(log=source_of(log), blocks=planned.blocks)

    streamed = StreamedLog(
        UnsizedSource(source=PiecesSource(pieces=pieces)), block_bytes=block_bytes
    )
    blocks = [bytes(view) for view in streamed.chunks()]

    assert b"".join(blocks) == b"".join(bytes(view) for view in blocked.chunks())
    assert [len(block) for block in blocks] == list(blocked.parts)
    assert streamed.parts is PartBounds.EACH_CHUNK
    assert streamed.divided() == planned


def test_streamed_log_when_the_log_ends_within_a_batch_then_corrupt() -> None:
    streamed = StreamedLog(source_of(log_of([10, 10])[:-1]), block_bytes=1_000)

    with pytest.raises(CorruptError, match="truncated"):
        list(streamed.chunks())


def test_streamed_log_when_there_is_no_batch_then_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="without batches"):
        list(StreamedLog(source_of(), block_bytes=1_000).chunks())
