"""Where a block ends, to the byte."""

from __future__ import annotations

import pytest

from rsm.layout.blocks.block_format import ENTRY_HEADER_BYTES, HEADER_BYTES, MAX_ENTRY_BYTES
from rsm.layout.blocks.block_plan import BlockPlanner, PlannedBlock
from rsm.segment.errors import UnsupportedError

ENTRY_BYTES = 10
TWO_ENTRIES = HEADER_BYTES + 2 * (ENTRY_HEADER_BYTES + ENTRY_BYTES)


def _planned(block_bytes: int, *lengths_bytes: int) -> list[PlannedBlock]:
    planner = BlockPlanner(block_bytes=block_bytes, first_entry_id=7)
    added = [planner.add(length_bytes) for length_bytes in lengths_bytes]
    return [*(block for block in added if block is not None), planner.finish()]


def test_entry_when_it_fills_the_block_exactly_then_belongs_to_it() -> None:
    first, last = _planned(TWO_ENTRIES, ENTRY_BYTES, ENTRY_BYTES, ENTRY_BYTES)

    assert first == PlannedBlock(
        first_entry_id=7, entry_count=2, position=0, block_bytes=TWO_ENTRIES, padding_bytes=0
    )
    assert last == PlannedBlock(
        first_entry_id=9,
        entry_count=1,
        position=TWO_ENTRIES,
        block_bytes=HEADER_BYTES + ENTRY_HEADER_BYTES + ENTRY_BYTES,
        padding_bytes=0,
    )


def test_entry_when_a_byte_too_long_for_the_block_then_begins_another() -> None:
    first, last = _planned(TWO_ENTRIES, ENTRY_BYTES, ENTRY_BYTES + 1)

    assert (first.entry_count, first.block_bytes) == (1, TWO_ENTRIES)
    assert first.padding_bytes == ENTRY_HEADER_BYTES + ENTRY_BYTES
    assert (last.first_entry_id, last.entry_count) == (8, 1)


def test_entry_when_larger_than_a_block_then_has_one_of_its_own() -> None:
    large_bytes = TWO_ENTRIES + 1

    before, own, after = _planned(TWO_ENTRIES, ENTRY_BYTES, large_bytes, ENTRY_BYTES)

    assert (before.entry_count, before.block_bytes) == (1, TWO_ENTRIES)
    assert own.block_bytes == HEADER_BYTES + ENTRY_HEADER_BYTES + large_bytes
    assert (own.entry_count, own.padding_bytes) == (1, 0)
    assert after.position == own.position + own.block_bytes


@pytest.mark.parametrize(
    ("length_bytes", "fits"), [(MAX_ENTRY_BYTES, True), (MAX_ENTRY_BYTES + 1, False)]
)
def test_entry_when_longer_than_the_format_can_hold_then_refused(
    length_bytes: int, *, fits: bool
) -> None:
    planner = BlockPlanner(block_bytes=TWO_ENTRIES)
    if fits:
        assert planner.add(length_bytes) is None
        return

    with pytest.raises(UnsupportedError) as refused:
        planner.add(length_bytes)

    assert refused.value.context["limit_bytes"] == MAX_ENTRY_BYTES
    assert planner.next_entry_id == 0


def test_room_when_entries_are_added_together_then_shrinks_by_them_and_their_headers() -> None:
    planner = BlockPlanner(block_bytes=TWO_ENTRIES, first_entry_id=7)
    assert planner.room_bytes == TWO_ENTRIES - HEADER_BYTES

    planner.add_fitting(2, 2 * ENTRY_BYTES)

    assert (planner.room_bytes, planner.next_entry_id) == (0, 9)
    full = planner.add(0)
    assert full is not None
    assert (full.first_entry_id, full.entry_count) == (7, 2)
