from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.errors import NotFoundError, UnsupportedError
from spark_tools.reading.admission import TriggerLimits
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Hole, plan
from spark_tools.reading.stream_offsets import (
    between,
    initial_offsets,
    latest_offsets,
    stored_offsets,
)
from spark_tools.stored_partition import StoredPartition
from tests.metadata_builder import FINISHED, ORDERS, log_starts, segment_metadata

OTHER = replace(ORDERS, partition=1)
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


def test_initial_when_nothing_is_stored_yet_then_begins_with_what_comes_first() -> None:
    """The log of a topic tiered late begins above 0; the stream waits for no lower offset."""
    latest = ReadOptions.of({"subscribe": "orders", "startingOffsets": "latest"})
    started = initial_offsets([stored()], OPTIONS)

    assert started == initial_offsets([stored()], latest) == {}
    assert latest_offsets([stored(log_start=1_000)], started) == {}
    assert latest_offsets([stored((1_000, 2_000), log_start=1_000)], started) == {
        "orders": {"0": 2_000}
    }


def test_latest_when_a_new_partition_lacks_its_beginning_then_waits_for_it() -> None:
    partition = stored((1_000, 2_000), log_start=500)

    assert latest_offsets([partition], {}) == {"orders": {"0": 500}}


def test_initial_when_an_offset_is_named_then_is_kept_though_nothing_is_stored() -> None:
    named = ReadOptions.of({"subscribe": "orders", "startingOffsets": '{"orders":{"0":0}}'})

    assert initial_offsets([stored()], named) == {"orders": {"0": 0}}


@pytest.mark.parametrize("stored_now", [((1_000, 2_000),), ()])
def test_latest_when_what_is_wanted_has_expired_then_is_asked_for_and_fails(
    stored_now: tuple[tuple[int, int], ...],
) -> None:
    """The stream neither skips expired offsets nor waits for them silently."""
    partition, start = stored(*stored_now, log_start=1_000), {"orders": {"0": 500}}

    end = latest_offsets([partition], start)

    assert end["orders"]["0"] > 500
    with pytest.raises(NotFoundError, match="offset=500"):
        plan(partition, between(OPTIONS, start, end))


@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_between_when_a_partition_is_new_then_is_read_from_its_beginning(starting: str) -> None:
    """As in Spark's Kafka source: a stream that began before loses no record."""
    options = ReadOptions.of({"subscribe": "orders", "startingOffsets": starting})
    partition = stored((3, 10), (10, 20))

    (first, second) = plan(partition, between(options, {}, {"orders": {"0": 20}}))

    assert not isinstance(first, Hole)
    assert not isinstance(second, Hole)
    assert (first.offsets.start_offset, second.offsets.end_offset) == (3, 20)


def test_between_when_the_end_does_not_name_a_partition_then_nothing_of_it_is_read() -> None:
    """The partition was stored after the end was returned, and comes with the next batch."""
    assert plan(stored((3, 10)), between(OPTIONS, {}, {})) == []


def test_between_when_it_would_go_back_then_refused() -> None:
    """Before Spark 4.2 a reader lacks the position of a resumed stream; nothing comes twice."""
    with pytest.raises(UnsupportedError, match="reached=300"):
        between(OPTIONS, {"orders": {"0": 300}}, {"orders": {"0": 100}})


def test_between_when_of_a_batch_then_only_that() -> None:
    options = between(OPTIONS, {"orders": {"0": 5}}, {"orders": {"0": 9, "1": 4}})

    assert (options.starting.of("orders", 0), options.ending.of("orders", 0)) == (5, 9)
    assert (options.starting.of("orders", 1), options.ending.of("orders", 1)) == (-2, 4)


def test_latest_when_limited_then_a_share_of_each_partition_from_where_it_is() -> None:
    two = [stored((0, 10), (10, 40)), replace(stored((0, 10)), topic_id_partition=OTHER)]
    start = {"orders": {"0": 10, "1": 0}}

    limited = latest_offsets(two, start, TriggerLimits(max_offsets=20))

    assert limited == {"orders": {"0": 25, "1": 5}}
    assert latest_offsets(two, start, TriggerLimits(max_bytes=1)) == {"orders": {"0": 11, "1": 1}}


def test_latest_when_limited_and_what_was_to_be_read_expired_then_that_is_asked_for() -> None:
    start = {"orders": {"0": 2}}

    latest = latest_offsets([stored((0, 30), log_start=8)], start, TriggerLimits(max_offsets=4))

    assert latest == {"orders": {"0": 12}}


def test_latest_when_there_is_a_target_then_nothing_beyond_it() -> None:
    target = {"orders": {"0": 20}}
    two = [stored((0, 10), (10, 40)), replace(stored((0, 10)), topic_id_partition=OTHER)]

    assert latest_offsets(two, {"orders": {"0": 5}}, target=target) == {"orders": {"0": 20}}
    assert latest_offsets(two, {"orders": {"0": 25}}, target=target) == {"orders": {"0": 25}}


def test_target_when_there_is_a_hole_below_the_start_then_what_follows_it_is_read() -> None:
    partition = stored((0, 10), (20, 40))
    target = stored_offsets([partition])

    assert target == {"orders": {"0": 40}}
    assert latest_offsets([partition], {"orders": {"0": 20}}, target=target) == target
    assert latest_offsets([partition], {"orders": {"0": 5}}, target=target) == {"orders": {"0": 10}}


def test_target_when_nothing_is_stored_of_a_partition_then_its_position_is_kept() -> None:
    two = [stored(), replace(stored((0, 20)), topic_id_partition=OTHER)]
    start = {"orders": {"0": 50, "1": 10}}

    latest = latest_offsets(two, start, target=stored_offsets(two))

    assert latest == {"orders": {"0": 50, "1": 20}}
