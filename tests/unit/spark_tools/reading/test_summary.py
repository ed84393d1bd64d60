from __future__ import annotations

from dataclasses import replace

from rsm.segment.ranges import OffsetRange
from spark_tools.reading.plan import joined, plan
from spark_tools.reading.summary import PartitionSummary, in_one_line, readable_size, summarized
from tests.metadata_builder import ORDERS
from tests.unit.spark_tools.reading.test_plan import bounds, options, segment, stored


def summary_of(
    *segments: tuple[int, int], given: dict[str, str], local: OffsetRange | None = None
) -> PartitionSummary:
    partition = stored(*(segment(n, *offsets) for n, offsets in enumerate(segments, start=1)))
    parsed = options(**given)
    pieces = plan(partition, parsed, local)
    (found,) = summarized(
        [partition], joined(pieces, 0), parsed, {} if local is None else {ORDERS: local}
    )
    return found


def test_summary_when_bounded_then_counts_what_is_read_and_what_is_not() -> None:
    found = summary_of((0, 10), (10, 20), (20, 30), given=bounds(10, 25))

    assert found.offsets == OffsetRange(start_offset=10, end_offset=25)
    assert (found.segments, found.tasks) == (2, 2)
    assert (found.pruned_by_offset, found.pruned_by_time) == (1, 0)
    assert (found.broker_offsets, found.missing_offsets) == (0, 0)


def test_summary_when_segments_are_too_old_then_pruned_by_time() -> None:
    old = replace(segment(1, 0, 10), max_timestamp_ms=5)
    partition, parsed = stored(old, segment(2, 10, 20)), options(fromTimestamp="6")

    (found,) = summarized([partition], joined(plan(partition, parsed), 0), parsed, {})

    assert (found.segments, found.pruned_by_time, found.pruned_by_offset) == (1, 1, 0)


def test_summary_when_there_is_nothing_new_at_the_broker_then_nothing_is_read() -> None:
    """A batch that continues where the last one ended, before anything came."""
    local = OffsetRange(start_offset=5, end_offset=30)

    found = summary_of((0, 10), local=local, given=bounds(30, -1))

    assert (found.tasks, found.broker_offsets) == (0, 0)


def test_summary_when_it_continues_at_the_broker_or_holes_are_left_out_then_counted() -> None:
    local = OffsetRange(start_offset=25, end_offset=40)

    found = summary_of(
        (0, 10), local=local, given={"mode": "permissive", "endingOffsets": "latest"}
    )

    assert (found.broker_offsets, found.missing_offsets) == (15, 15)
    expected = "offsets read from the brokers: 15, unreadable offsets: 15"
    assert expected in in_one_line([found])


def test_size_when_shown_then_with_a_unit() -> None:
    assert [readable_size(n) for n in (0, 1023, 1536, 3 << 40)] == [
        "0 B", "1023 B", "1.5 KiB", "3.0 TiB",
    ]  # fmt: skip
