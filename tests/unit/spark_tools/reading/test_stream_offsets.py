from __future__ import annotations

import pytest

from rlmm.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.errors import NotFoundError
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.stream_offsets import between, initial_offsets, latest_offsets
from spark_tools.stored_partition import StoredPartition
from tests.metadata_builder import FINISHED, ORDERS, log_starts, segment_metadata

OPTIONS = ReadOptions.of({"subscribe": "orders"})


def stored(*offsets: tuple[int, int], log_start: int | None = None) -> StoredPartition:
    segments = tuple(
        segment_metadata(number, start, end, state=FINISHED)
        for number, (start, end) in enumerate(offsets)
    )
    state = PartitionState(lineage=Lineage.of((0, 0)), log_starts=log_starts(log_start))
    return StoredPartition(topic_id_partition=ORDERS, state=state, segments=segments)


def test_initial_when_earliest_then_the_first_stored() -> None:
    assert initial_offsets([stored((5, 10))], OPTIONS) == {"orders": {"0": 5}}
    latest = ReadOptions.of({"subscribe": "orders", "startingOffsets": "latest"})
    assert initial_offsets([stored((5, 10))], latest) == {"orders": {"0": 10}}


def test_initial_when_asked_below_what_is_stored_then_said() -> None:
    options = ReadOptions.of({"subscribe": "orders", "startingOffsets": '{"orders":{"0":1}}'})

    with pytest.raises(NotFoundError):
        initial_offsets([stored((5, 10))], options)


def test_latest_when_a_segment_in_between_is_not_there_yet_then_waits_before_it() -> None:
    start = {"orders": {"0": 5}}

    assert latest_offsets([stored((0, 10), (20, 30))], start) == {"orders": {"0": 10}}
    assert latest_offsets([stored((0, 10), (10, 20), (20, 30))], start) == {"orders": {"0": 30}}


def test_latest_when_nothing_is_new_then_as_it_was() -> None:
    start = {"orders": {"0": 10}}

    assert latest_offsets([stored((0, 10))], start) == start
    assert latest_offsets([stored()], start) == start


def test_latest_when_a_partition_is_new_then_from_its_beginning() -> None:
    assert latest_offsets([stored((3, 10))], {"orders": {"1": 4}}) == {"orders": {"0": 10}}


def test_between_when_of_a_batch_then_only_that() -> None:
    options = between(OPTIONS, {"orders": {"0": 5}}, {"orders": {"0": 9, "1": 4}})

    assert (options.starting.of("orders", 0), options.ending.of("orders", 0)) == (5, 9)
    assert options.starting.of("orders", 1) == OPTIONS.starting.default
