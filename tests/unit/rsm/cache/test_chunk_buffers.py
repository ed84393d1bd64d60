"""Memory of chunks is reused, but never while a view of it exists."""

from __future__ import annotations

import ctypes
import mmap
import resource
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.cache.chunk_buffers import ChunkBuffers

MIB = 1 << 20


def address_of(buffer: memoryview) -> int:
    return ctypes.addressof(ctypes.c_ubyte.from_buffer(buffer))


def fill(buffer: memoryview) -> memoryview:
    """Write to all of the buffer, so that it has memory."""
    buffer[:: mmap.PAGESIZE] = bytes(-(-len(buffer) // mmap.PAGESIZE))
    return buffer


def faults_of(buffer: memoryview) -> float:
    """Return the share of the buffer that had no memory."""
    before = _faults()
    fill(buffer)
    return (_faults() - before) * mmap.PAGESIZE / len(buffer)


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
    """A chunk that fits into a small cache is not refused because of a partly filled unit."""
    assert ChunkBuffers(budget_bytes=budget_bytes).buffered_bytes(length_bytes) == expected


def test_buffer_when_nobody_has_it_any_more_then_the_next_one_of_its_size() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    first = fill(buffers.take(3 * MIB + 1))
    address = address_of(first)
    del first

    second = buffers.take(4 * MIB)

    assert (len(second), address_of(second)) == (4 * MIB, address)
    assert buffers.free_bytes == 0


def test_buffer_when_somebody_has_a_part_of_it_then_not_used_again_before() -> None:
    """Bytes that are being sent to a client must not change."""
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    first = buffers.take(2 * MIB)
    address = address_of(first)
    first[:3] = b"abc"
    part = first[:3]
    del first

    second = buffers.take(2 * MIB)
    second[:3] = b"xyz"

    assert bytes(part) == b"abc"
    del part
    assert address_of(buffers.take(2 * MIB)) == address


def test_buffers_when_more_is_released_than_is_kept_then_the_rest_returns_to_the_system() -> None:
    buffers = ChunkBuffers(budget_bytes=36 * MIB)
    taken = [fill(buffers.take(4 * MIB)) for _ in range(4)]
    before = _resident_bytes()

    taken.clear()

    assert buffers.free_bytes == 9 * MIB
    assert before - _resident_bytes() > 6 * MIB


def test_buffers_when_all_is_released_then_no_addresses_are_kept_without_memory() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    for _ in range(5):
        taken = [buffers.take(16 * MIB) for _ in range(6)]
        taken.clear()

        assert len(buffers._slabs) == 1


def test_buffer_when_there_is_room_with_memory_then_it_is_that() -> None:
    """The free space in the fuller slab has no memory any more."""
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    first = [fill(buffers.take(4 * MIB)) for _ in range(4)]
    second = [fill(buffers.take(4 * MIB)) for _ in range(4)]
    del second[:2]
    del first[0]
    assert buffers.free_bytes == 8 * MIB

    third = [buffers.take(4 * MIB) for _ in range(3)]

    assert [round(faults_of(each)) for each in third] == [0, 0, 1]
    assert len(first) + len(second) == 5


def test_buffer_when_two_rooms_are_alike_then_of_the_slab_that_is_used_more() -> None:
    """The other slab may soon be empty, and then has space for a large chunk."""
    buffers = ChunkBuffers(budget_bytes=64 * MIB)
    first = [buffers.take(4 * MIB) for _ in range(4)]
    second = [buffers.take(4 * MIB) for _ in range(4)]
    del first[:3], second[:1]

    third = buffers.take(4 * MIB)

    assert 0 <= address_of(second[0]) - address_of(third) <= 4 * MIB
    assert len(first) == 1


def test_buffers_when_chunks_are_larger_as_a_rule_then_those_are_used_again_too() -> None:
    buffers = ChunkBuffers(budget_bytes=256 * MIB, most_bytes=32 * MIB)
    fill(buffers.take(32 * MIB))

    assert faults_of(buffers.take(31 * MIB)) < 0.1


def test_buffers_when_another_size_is_wanted_then_what_small_ones_had_is_used_for_large_ones() -> (
    None
):
    buffers = ChunkBuffers(budget_bytes=64 * MIB)
    small = [fill(buffers.take(4 * MIB)) for _ in range(4)]
    small.clear()

    large = buffers.take(16 * MIB)
    assert faults_of(large) < 0.1
    del large
    assert max(map(faults_of, [buffers.take(8 * MIB), buffers.take(8 * MIB)])) < 0.1


def test_buffers_when_sizes_take_turns_then_memory_is_touched_once() -> None:
    """For example, a reader passes through segments with different chunk sizes."""
    buffers = ChunkBuffers(budget_bytes=64 * MIB)
    held: deque[memoryview] = deque()
    new_bytes = 0.0
    for number in range(64):
        size_bytes = (8, 16)[number // 8 % 2] * MIB
        while sum(map(len, held)) + size_bytes > 64 * MIB:
            held.popleft()
        held.append(buffers.take(size_bytes))
        new_bytes += faults_of(held[-1]) * size_bytes

    assert new_bytes < (64 + 16) * MIB


def test_buffers_when_holes_are_left_then_they_hold_no_memory() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    taken = [fill(buffers.take(MIB)) for _ in range(64)]
    before = _resident_bytes()

    del taken[1::2]

    assert buffers.free_bytes == 8 * MIB
    assert before - _resident_bytes() > 23 * MIB


@given(steps=st.lists(st.tuples(st.booleans(), st.integers(1, 17 * MIB)), max_size=30))
def test_buffers_at_random_then_no_two_share_memory_and_no_more_is_kept_than_may_be(
    steps: list[tuple[bool, int]],
) -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    held: list[tuple[memoryview, int]] = []
    for number, (takes, size_bytes) in enumerate(steps):
        if held and not takes:
            held.pop(size_bytes % len(held))
        else:
            buffer = buffers.take(size_bytes)
            buffer[0] = buffer[-1] = number
            held.append((buffer, number))
        locations = sorted((address_of(buffer), len(buffer)) for buffer, _ in held)
        assert all(start + size <= after for (start, size), (after, _) in pairwise(locations))
        assert buffers.free_bytes <= 8 * MIB

    assert all(buffer[0] == buffer[-1] == number for buffer, number in held)


def test_buffer_when_small_then_of_its_own() -> None:
    buffers = ChunkBuffers(budget_bytes=64 * MIB)

    assert bytes(buffers.take(100)) == bytes(100)
    assert buffers.free_bytes == 0


def test_buffer_when_very_large_then_of_its_own() -> None:
    buffers = ChunkBuffers(budget_bytes=256 * MIB)

    assert len(buffers.take(17 * MIB)) == 17 * MIB
    assert buffers.free_bytes == 0


def test_buffer_when_released_within_take_then_taken_back_later_and_nobody_waits() -> None:
    """The garbage collector may run at any point."""
    buffers = ChunkBuffers(budget_bytes=32 * MIB)
    buffer = buffers.take(2 * MIB)
    address = address_of(buffer)

    with buffers._lock:
        del buffer

    assert buffers.free_bytes == 0
    assert address_of(buffers.take(2 * MIB)) == address


def test_buffer_of_a_small_cache_when_released_then_not_used_again() -> None:
    buffers = ChunkBuffers(budget_bytes=8 * MIB)

    buffers.take(4 * MIB)

    assert buffers.free_bytes == 0


def test_made_ready_then_the_next_buffer_of_that_size_has_been_touched() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)

    buffers.make_ready(MIB + 1)
    before = _faults()
    for _ in range(100):
        buffers.make_ready(MIB + 1)
    assert _faults() - before < 2 * MIB // mmap.PAGESIZE // 2

    assert buffers.free_bytes == 2 * MIB
    buffer = buffers.take(MIB + 1)
    assert buffers.free_bytes == 0
    assert faults_of(buffer) < 0.2


@pytest.mark.parametrize(
    ("budget_bytes", "length_bytes"), [(8 * MIB, 4 * MIB), (32 * MIB, 9 * MIB), (32 * MIB, 100)]
)
def test_made_ready_when_small_or_more_than_is_kept_then_nothing_is_kept(
    budget_bytes: int, length_bytes: int
) -> None:
    buffers = ChunkBuffers(budget_bytes=budget_bytes)

    buffers.make_ready(length_bytes)

    assert buffers.free_bytes == 0


def test_made_ready_when_there_is_nothing_to_touch_it_with_then_nothing_is_kept() -> None:
    buffers = ChunkBuffers(budget_bytes=32 * MIB)

    with _no_descriptors():
        buffers.make_ready(MIB)

    assert buffers.free_bytes == 0


@contextmanager
def _no_descriptors() -> Iterator[None]:
    """Let the process open no further file."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)
