"""Parts of a task that are under way at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa

from spark_tools.repair.execution import OUTCOMES, _in_order, rehearse
from spark_tools.repair.outcomes import Outcome
from tests.unit.spark_tools.repair.test_execution import decisions

PARTS_AT_ONCE = 4


def test_parts_when_stores_take_their_time_then_four_are_under_way_at_once() -> None:
    """Each part waits for the three that are under way with it."""
    together = Barrier(PARTS_AT_ONCE, timeout=10)

    def act(_part: pa.RecordBatch) -> list[Outcome]:
        together.wait()
        return []

    part = pa.RecordBatch.from_pylist([{"offset": 1}])
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        assert list(_in_order(pool, act, [part] * 2 * PARTS_AT_ONCE)) == []

    assert not together.broken


def test_rehearse_when_there_are_no_letters_then_no_outcomes() -> None:
    (outcomes,) = rehearse([], decisions({}))

    assert outcomes.num_rows == 0
    assert outcomes.schema.equals(OUTCOMES)
