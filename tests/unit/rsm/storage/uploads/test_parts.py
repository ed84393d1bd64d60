from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, RetriableError
from rsm.storage.uploads.parts import PartReader
from tests.contract.sources import CountingSource, PiecesSource, failing_source, source_of


@given(pieces=st.lists(st.binary(max_size=20), max_size=8), part_bytes=st.integers(1, 30))
def test_reader_when_read_in_parts_then_they_are_the_content(
    pieces: list[bytes], part_bytes: int
) -> None:
    reader = PartReader(source_of(*pieces), "a")

    parts = []
    while reader.left_bytes:
        parts.append(bytes(reader.read(min(part_bytes, reader.left_bytes))))

    content = b"".join(pieces)
    assert b"".join(parts) == content
    assert all(len(part) == part_bytes for part in parts[:-1])
    assert reader.checksum == crc32c(content)


@pytest.mark.parametrize("announced_bytes", [2, 4])
def test_reader_when_source_lies_about_its_length_then_corrupt(announced_bytes: int) -> None:
    reader = PartReader(PiecesSource(pieces=(b"abc",), announced_bytes=announced_bytes), "a")

    with pytest.raises(CorruptError, match="differs from the announced length"):
        reader.read(announced_bytes)


def test_reader_when_source_fails_after_its_last_byte_then_the_last_part_is_not_given() -> None:
    """A source may find only at its very end that its content must not be stored."""
    reader = PartReader(failing_source(b"abc", b""), "a")

    with pytest.raises(RetriableError, match="the source broke"):
        reader.read(3)


def test_read_when_the_store_accepts_as_it_reads_then_acknowledged_before_the_part_is_whole() -> (
    None
):
    """A part may be larger than what the source can buffer."""
    source = CountingSource(pieces=(b"abc", b"de", b"f"))
    reader = PartReader(source, "a", accepts_as_read=True)

    assert reader.read(4) == b"abcd"

    assert source.accepted == [3]
    assert reader.read(4) == b"ef"
    assert source.accepted == [3, 2, 1]


def test_read_when_a_chunk_ends_with_a_part_then_acknowledged_once_the_next_part_is_read() -> None:
    """A caller that asks for the next part has sent this one."""
    source = CountingSource(pieces=(b"abcd", b"ef"))
    reader = PartReader(source, "a", accepts_as_read=True)

    reader.read(2)
    reader.read(2)
    assert source.accepted == []

    reader.read(2)
    assert source.accepted == [4]


def test_read_when_the_store_accepts_parts_then_not_acknowledged_yet() -> None:
    source = CountingSource(pieces=(b"abc", b"de"))

    PartReader(source, "a").read(4)

    assert source.accepted == []
