from __future__ import annotations

import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.compression import CompressionType, decompress
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.segment_builder import XERIAL_HEADER, compress_payload

COMPRESSED = [each for each in CompressionType if each is not CompressionType.NONE]


@given(codec=st.sampled_from(CompressionType), plain=st.binary(min_size=1, max_size=2_000))
def test_decompress_when_compressed_then_plain_bytes_come_back(
    codec: CompressionType, plain: bytes
) -> None:
    assert decompress(codec, compress_payload(codec, plain)) == plain


@pytest.mark.parametrize("codec", COMPRESSED)
def test_decompress_when_plain_is_much_larger_than_the_first_guess_then_whole(
    codec: CompressionType,
) -> None:
    plain = b"a" * 3_000_000

    assert decompress(codec, compress_payload(codec, plain)) == plain


@pytest.mark.parametrize("codec", COMPRESSED)
def test_decompress_when_plain_fits_the_bound_exactly_then_whole(codec: CompressionType) -> None:
    plain = b"a" * 1_000_000

    assert decompress(codec, compress_payload(codec, plain), max_bytes=1_000_000) == plain


@pytest.mark.parametrize("codec", COMPRESSED)
def test_decompress_when_plain_is_beyond_the_bound_then_corrupt(codec: CompressionType) -> None:
    compressed = compress_payload(codec, b"a" * 1_000_001)

    with pytest.raises(CorruptError, match="too large"):
        decompress(codec, compressed, max_bytes=1_000_000)


@given(plain=st.binary(min_size=1, max_size=2_000))
def test_decompress_when_snappy_is_plain_then_read_too(plain: bytes) -> None:
    compressed = bytes(cramjam.snappy.compress_raw(plain))

    assert decompress(CompressionType.SNAPPY, compressed) == plain


def test_decompress_when_snappy_claims_more_than_the_bound_then_corrupt() -> None:
    claim_of_4_gib = b"\xff\xff\xff\xff\x0f" + b"\x00"

    with pytest.raises(CorruptError):
        decompress(CompressionType.SNAPPY, claim_of_4_gib)


@pytest.mark.parametrize(
    "blocks",
    [b"\x00", struct.pack(">i", -1), struct.pack(">i", 0), struct.pack(">i", 100) + b"short"],
    ids=["length cut", "negative", "zero", "beyond the end"],
)
def test_decompress_when_a_snappy_block_is_out_of_bounds_then_corrupt(blocks: bytes) -> None:
    with pytest.raises(CorruptError, match="snappy block"):
        decompress(CompressionType.SNAPPY, XERIAL_HEADER + blocks)


@given(codec=st.sampled_from(COMPRESSED), data=st.binary(max_size=100))
def test_decompress_when_data_is_random_then_bounded_bytes_or_corrupt(
    codec: CompressionType, data: bytes
) -> None:
    try:
        plain = decompress(codec, data, max_bytes=1_000)
    except CorruptError:
        return

    assert len(plain) <= 1_000


@pytest.mark.parametrize("codec", COMPRESSED)
def test_decompress_when_data_is_cut_short_then_corrupt(codec: CompressionType) -> None:
    compressed = compress_payload(codec, bytes(range(256)) * 10)

    with pytest.raises(CorruptError):
        decompress(codec, compressed[:-9], max_bytes=100_000)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_decompress_when_the_number_is_unknown_then_unsupported(number: int) -> None:
    with pytest.raises(UnsupportedError):
        decompress(number, b"")
