from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.producer_snapshot import is_whole_snapshot


def snapshot(entries: bytes, version: int = 1) -> bytes:
    return struct.pack(">hI", version, crc32c(entries)) + entries


@given(entries=st.binary(max_size=100))
def test_is_whole_when_crc_is_right_then_true(entries: bytes) -> None:
    assert is_whole_snapshot(snapshot(entries))


@given(entries=st.binary(min_size=4, max_size=100), kept=st.integers(0, 100))
def test_is_whole_when_cut_short_then_false(entries: bytes, kept: int) -> None:
    """R21: the broker writes the snapshot in place, so a reader may see half of it."""
    whole = snapshot(b"\x01" + entries)

    assert not is_whole_snapshot(whole[: kept % len(whole)])


@pytest.mark.parametrize("data", [b"", bytes(10), snapshot(b"\x00" * 4, version=2)])
def test_is_whole_when_empty_or_zeros_or_of_another_version_then_false(data: bytes) -> None:
    assert not is_whole_snapshot(data)
