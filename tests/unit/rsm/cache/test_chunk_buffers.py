"""Memory of chunks that is used again, and never while somebody still looks at it."""

from __future__ import annotations

import pytest

from rsm.cache.chunk_buffers import ChunkBuffers, held_bytes

MIB = 1 << 20


def pages_of(buffer: memoryview) -> int:
    return id(buffer.obj)


@pytest.mark.parametrize(
    ("length_bytes", "expected"),
    [(0, 0), (1, 1), (MIB - 1, MIB - 1), (MIB, MIB), (MIB + 1, 2 * MIB), (3 * MIB, 4 * MIB)],
)
def test_held_bytes_when_large_then_a_power_of_two(length_bytes: int, expected: int) -> None:
    assert held_bytes(length_bytes) == expected


def test_buffer_when_given_back_then_the_next_one_of_its_size() -> None:
    buffers = ChunkBuffers(kept_bytes=8 * MIB)
    first = buffers.take(3 * MIB)
    first[:] = b"x" * len(first)
    pages = pages_of(first)
    buffers.give_back(first)

    second = buffers.take(4 * MIB)

    assert (len(second), pages_of(second)) == (4 * MIB, pages)


def test_buffer_when_somebody_has_a_part_of_it_then_not_used_again() -> None:
    """What is being sent to a client stays what it is."""
    buffers = ChunkBuffers(kept_bytes=8 * MIB)
    first = buffers.take(2 * MIB)
    first[:3] = b"abc"
    part = first[:3]
    buffers.give_back(first)

    second = buffers.take(2 * MIB)
    second[:3] = b"xyz"

    assert bytes(part) == b"abc"


def test_buffers_when_more_are_given_back_than_are_kept_then_the_rest_goes() -> None:
    buffers = ChunkBuffers(kept_bytes=5 * MIB)
    taken = [buffers.take(2 * MIB) for _ in range(4)]
    for each in taken:
        buffers.give_back(each)

    assert buffers._free_bytes() == 4 * MIB


def test_buffers_when_another_size_is_wanted_then_as_much_of_the_old_goes() -> None:
    buffers = ChunkBuffers(kept_bytes=16 * MIB)
    for each in [buffers.take(2 * MIB) for _ in range(6)]:
        buffers.give_back(each)

    buffers.take(4 * MIB)

    assert buffers._free_bytes() == 8 * MIB


def test_buffer_when_small_then_of_its_own() -> None:
    buffers = ChunkBuffers(kept_bytes=16 * MIB)
    small = buffers.take(100)

    assert bytes(small) == bytes(100)
    buffers.give_back(small)
    assert buffers._free_bytes() == 0
