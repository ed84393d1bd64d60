"""Memory of chunks that is used again, and never while somebody still looks at it."""

from __future__ import annotations

import mmap
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rsm.cache.chunk_buffers import ChunkBuffers

MIB = 1 << 20


def pages_of(buffer: memoryview) -> int:
    return id(buffer.obj)


@pytest.mark.parametrize(
    ("budget_bytes", "length_bytes", "expected"),
    [
        (32 * MIB, 0, 0),
        (32 * MIB, MIB - 1, MIB - 1),
        (32 * MIB, MIB, MIB),
        (32 * MIB, MIB + 1, 2 * MIB),
        (5 * MIB, 4 * MIB + 1, 4 * MIB + 1),
        (5 * MIB, 5 * MIB, 5 * MIB),
    ],
)
def test_held_bytes_when_large_then_whole_units_unless_the_cache_is_small(
    budget_bytes: int, length_bytes: int, expected: int
) -> None:
    """What fits into a small cache is not to be refused for a unit that is not filled."""
    assert ChunkBuffers(budget_bytes=budget_bytes).held_bytes(length_bytes) == expected


def test_buffer_when_given_back_then_the_next_one_of_its_size() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    first = buffers.take(3 * MIB + 1)
    first[:] = b"x" * len(first)
    pages = pages_of(first)
    buffers.give_back(first)

    second = buffers.take(4 * MIB)

    assert (len(second), pages_of(second)) == (4 * MIB, pages)


def test_buffer_when_somebody_has_a_part_of_it_then_not_used_again() -> None:
    """What is being sent to a client stays what it is."""
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    first = buffers.take(2 * MIB)
    first[:3] = b"abc"
    part = first[:3]
    buffers.give_back(first)

    second = buffers.take(2 * MIB)
    second[:3] = b"xyz"

    assert bytes(part) == b"abc"


def test_buffers_when_more_are_given_back_than_are_kept_then_the_rest_goes() -> None:
    buffers = ChunkBuffers(budget_bytes=36 * MIB)
    taken = [buffers.take(4 * MIB) for _ in range(4)]
    for each in taken:
        buffers.give_back(each)

    assert buffers.free_bytes == 8 * MIB


def test_buffers_when_another_size_is_wanted_then_as_much_of_the_old_goes() -> None:
    buffers = ChunkBuffers(budget_bytes=64 * MIB)
    for each in [buffers.take(2 * MIB) for _ in range(6)]:
        buffers.give_back(each)

    buffers.take(4 * MIB)

    assert buffers.free_bytes == 8 * MIB


def test_buffer_when_small_then_of_its_own() -> None:
    buffers = ChunkBuffers(budget_bytes=64 * MIB)
    small = buffers.take(100)

    assert bytes(small) == bytes(100)
    buffers.give_back(small)
    assert buffers.free_bytes == 0


def test_buffer_when_given_back_within_take_then_not_kept_and_nobody_waits() -> None:
    """The garbage collector runs anywhere."""
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    buffer = buffers.take(2 * MIB)

    with buffers._lock:
        buffers.give_back(buffer)

    assert buffers.free_bytes == 0


def test_buffer_of_a_small_cache_when_given_back_then_not_used_again() -> None:
    buffers = ChunkBuffers(budget_bytes=8 * MIB)

    buffers.give_back(buffers.take(4 * MIB))

    assert buffers.free_bytes == 0


def test_made_ready_then_the_next_buffer_of_that_size_has_been_touched() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)

    for _ in range(3):
        buffers.make_ready(MIB + 1)

    assert buffers.free_bytes == 2 * MIB
    before = _faults()
    buffer = buffers.take(2 * MIB)
    buffer[:: mmap.PAGESIZE] = bytes(len(buffer) // mmap.PAGESIZE)
    assert buffers.free_bytes == 0
    assert _faults() - before < 2 * MIB // mmap.PAGESIZE // 2


@pytest.mark.parametrize(
    ("budget_bytes", "length_bytes"), [(8 * MIB, 4 * MIB), (32 * MIB, 9 * MIB), (32 * MIB, 100)]
)
def test_made_ready_when_small_or_more_than_is_kept_then_nothing_is_held(
    budget_bytes: int, length_bytes: int
) -> None:
    buffers = ChunkBuffers(budget_bytes=budget_bytes)

    buffers.make_ready(length_bytes)

    assert buffers.free_bytes == 0


def test_made_ready_when_there_is_nothing_to_touch_it_with_then_nothing_is_held() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)

    with _no_descriptors():
        buffers.make_ready(MIB)

    assert buffers.free_bytes == 0


@contextmanager
def _no_descriptors() -> Iterator[None]:
    """The process has opened as many files as it may."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
