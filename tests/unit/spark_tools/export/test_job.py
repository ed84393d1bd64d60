"""When an export retries ranges for which the store did not answer."""

from __future__ import annotations

from collections import deque

from rsm.segment.ranges import OffsetRange
from spark_tools.export.file_ranges import FileRange
from spark_tools.export.job import next_ranges
from tests.metadata_builder import ORDERS


def file_range(start: int, failures: int) -> FileRange:
    offsets = OffsetRange(start_offset=start, end_offset=start + 10)
    return FileRange(topic_id_partition=ORDERS, offsets=offsets, pieces=(), failures=failures)


def test_next_ranges_when_some_failed_before_then_a_pause_that_grows_up_to_a_limit() -> None:
    pauses: list[float] = []
    failures = [0, 0, 1, 0, 0, 2, 9, 0, 0]
    every = [file_range(10 * number, each) for number, each in enumerate(failures)]
    queue = deque(every)
    taken = []
    while queue:
        taken += next_ranges(queue, 2, pauses.append)

    assert taken == every
    assert pauses == [2.0, 10.0, 30.0]
