from __future__ import annotations

import tempfile
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.source.batch_headers import BatchSpan, read_batch_extents, read_batch_spans
from rsm.segment.batches.batch import scan_batches
from rsm.segment.errors import CorruptError
from tests.segment_builder import build_batch, build_batches, build_legacy_message, record

VALUE_BYTES = st.integers(min_value=0, max_value=9000)


def spans_of(content: bytes) -> list[BatchSpan]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return list(read_batch_spans(file.fileno(), len(content)))


def extents_of(content: bytes) -> list[tuple[int, int]]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return list(read_batch_extents(file.fileno(), len(content)))


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), VALUE_BYTES), max_size=30))
def test_spans_of_any_batches_then_those_of_their_headers(
    shapes: Sequence[tuple[int, int]],
) -> None:
    """Headers may span two reads, and belong to messages of magic 0 and 1."""
    content = b"".join(
        build_batch([record(offset, b"." * size)])
        if magic == 2
        else build_legacy_message(offset, b"." * size, magic=magic)
        for offset, (magic, size) in enumerate(shapes)
    )

    spans = spans_of(content)

    assert spans == [
        BatchSpan(each.base_offset, each.last_offset, each.max_timestamp_ms, each.length_bytes)
        for _, each in scan_batches(memoryview(content))
    ]
    assert extents_of(content) == [(each.base_offset, each.length_bytes) for each in spans]


@given(st.integers(min_value=1, max_value=3000))
def test_spans_when_file_is_cut_anywhere_then_corrupt(cut_bytes: int) -> None:
    """Scenario 19: only whole batches are a segment."""
    batches = build_batches(5)
    content = b"".join(batches)
    ends = {len(b"".join(batches[:count])) for count in range(6)}
    cut = content[: -cut_bytes % len(content)]
    if len(cut) in ends:
        return

    with pytest.raises(CorruptError):
        spans_of(cut)
    with pytest.raises(CorruptError):
        extents_of(cut)


@pytest.mark.parametrize("position", [8, 16, 23])
def test_spans_when_header_is_nonsense_then_corrupt(position: int) -> None:
    content = bytearray(b"".join(build_batches(3)))
    second = len(build_batches(1)[0])
    content[second + position] = 0xFF

    with pytest.raises(CorruptError, match=f"position={second}"):
        spans_of(bytes(content))


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x00"])
def test_extents_when_a_length_cannot_be_then_corrupt(length: bytes) -> None:
    content = bytearray(b"".join(build_batches(3)))
    second = len(build_batches(1)[0])
    content[second + 8 : second + 12] = length

    with pytest.raises(CorruptError, match=f"position={second}"):
        extents_of(bytes(content))
