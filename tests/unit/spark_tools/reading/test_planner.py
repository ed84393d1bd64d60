"""The leases and reads of the partitions that the options select."""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.read_lease import ReadLeaseTaken
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.positions import TopicIdentity
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.cluster_topics import MAX_TIMEOUT_MS
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import BrokerPiece, SegmentPiece
from spark_tools.reading.planner import PlanLeases, Planner, _planned
from spark_tools.snapshot import MetadataSnapshot
from tests.folding import append
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import FINISHED, ORDERS, claim, segment_metadata, step
from tests.unit.spark_tools.reading.test_plan import bounds, offsets_of

_MAX_OFFSET = (1 << 63) - 1

SECOND = replace(ORDERS, partition=1)
BOTH = (ORDERS, SECOND)


def two_partitions() -> MemoryLog:
    """Return the metadata of two partitions, each with a segment of 100 offsets."""
    log = MemoryLog(ManualClock())
    for number, tip in enumerate(BOTH, start=1):
        append(log, claim(partition=tip))
        append(log, step(segment_metadata(number, partition=tip), FINISHED))
    return log


def snapshot(log: MemoryLog | None = None) -> MetadataSnapshot:
    clock = ManualClock()
    log = two_partitions() if log is None else log
    cache = MetadataCache(MemoryStore())
    settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))
    manager = TopicBasedRemoteLogMetadataManager(MemoryTopic(log), cache, clock, settings)
    assert manager.wait_ready(10_000).is_ready

    def identity() -> TopicIdentity:
        assert manager.identity is not None
        return manager.identity

    return MetadataSnapshot(manager, cache, identity)


def options(**given: str) -> ReadOptions:
    chosen = {} if "assign" in given else {"subscribe": ORDERS.topic}
    return ReadOptions.of({**chosen, **given})


def leases(*, keeps: bool = True) -> PlanLeases:
    return PlanLeases(holder="spark:a", taken=lambda _lease: None, keeps=keeps)


def leased(metadata: MetadataSnapshot, tip: TopicIdPartition = ORDERS) -> list[OffsetRange]:
    return [lease.offsets for lease in metadata.active_leases(tip)]


def test_pieces_when_partitions_are_assigned_then_only_they_are_read_and_leased() -> None:
    metadata = snapshot()

    tasks = Planner(BOTH, metadata, {}, leases()).tasks(options(assign='{"orders":[1]}'))
    pieces = [piece for task in tasks for piece in task]

    assert [piece.topic_id_partition for piece in pieces] == [SECOND]
    assert (leased(metadata), len(leased(metadata, SECOND))) == ([], 1)


def test_pieces_when_planned_then_the_lease_names_who_reads_and_for_how_long() -> None:
    metadata = snapshot()

    Planner(BOTH, metadata, {}, leases()).tasks(options(leaseMs="7000"))

    (lease,) = metadata.active_leases(ORDERS)
    assert lease.holder.startswith("spark:")
    assert lease.expires_ms == ManualClock().wall_ms() + 7_000


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (0, _MAX_OFFSET)),
        (bounds(3, 12), (3, 12)),
        (bounds(-2, 12), (0, 12)),
        (bounds(-2, 100), (0, 100)),
        ({"startingOffsets": bounds(3, 0)["startingOffsets"]}, (3, _MAX_OFFSET)),
    ],
)
def test_lease_when_bounded_then_is_of_what_may_be_read(
    given: dict[str, str], expected: tuple[int, int]
) -> None:
    metadata = snapshot()

    tasks = Planner((ORDERS,), metadata, {}, leases()).tasks(options(**given))
    pieces = [piece for task in tasks for piece in task]

    assert leased(metadata) == [OffsetRange(start_offset=expected[0], end_offset=expected[1])]
    assert offsets_of(pieces) == [(expected[0], min(expected[1], 100))]


@pytest.mark.parametrize("keeps", [True, False])
def test_lease_when_planned_again_then_keeps_what_was_leased_before_only_if_that_is_still_read(
    keeps: bool,
) -> None:
    metadata = snapshot()
    taken: list[ReadLeaseTaken] = []
    planner = Planner(
        (ORDERS,), metadata, {}, PlanLeases(holder="spark:a", taken=taken.append, keeps=keeps)
    )

    planner.tasks(options(**bounds(10, 20)))
    planner.tasks(options(**bounds(20, 30)))

    assert leased(metadata) == [OffsetRange(start_offset=10 if keeps else 20, end_offset=30)]
    assert [lease.offsets.end_offset for lease in taken] == [20, 30]


def test_lease_when_nothing_is_said_of_earlier_plans_then_keeps_what_they_read() -> None:
    assert PlanLeases(holder="spark:a", taken=lambda _lease: None).keeps


def test_pieces_when_no_lease_is_wanted_then_none_is_taken() -> None:
    metadata = snapshot()

    Planner(BOTH, metadata, {}, leases()).tasks(options(leaseMs="0"))

    assert leased(metadata) == []


def test_pieces_when_nothing_is_wanted_then_no_lease_is_taken() -> None:
    metadata = snapshot()

    assert Planner((ORDERS,), metadata, {}, leases()).tasks(options(**bounds(0, 0))) == []
    assert leased(metadata) == []


def test_cluster_when_asked_then_the_client_gets_the_timeout_of_the_options() -> None:
    """The client refuses more than its maximum before it sends a request."""
    planner = Planner(BOTH, snapshot(), {"bootstrap.servers": "127.0.0.1:1"}, leases())
    given = replace(options(endingOffsets="latest"), timeout_ms=MAX_TIMEOUT_MS + 1)

    for ask in (planner.look_for_new, planner.tasks):
        with pytest.raises(InvalidConfigError, match=f"expected=at most {MAX_TIMEOUT_MS} ms"):
            ask(given)


def test_tasks_when_cores_are_known_then_small_segments_are_joined_unless_more_are_wanted() -> None:
    planner = Planner(BOTH, snapshot(), {}, leases())
    known = replace(options(), parallelism=1)

    assert len(planner.tasks(options())) == len(planner.tasks(known)) == 2
    assert len(planner.tasks(replace(known, min_partitions=6))) >= 6


def three_segments() -> MemoryLog:
    """Return the metadata of a partition with three adjacent segments."""
    log = MemoryLog(ManualClock())
    append(log, claim())
    for number, start_offset in enumerate((0, 100, 200), start=1):
        append(log, step(segment_metadata(number, start_offset, start_offset + 100), FINISHED))
    return log


def test_tasks_when_cores_are_unknown_then_each_segment_is_a_task() -> None:
    planner = Planner((ORDERS,), snapshot(three_segments()), {}, leases())

    assert len(planner.tasks(options())) == 3
    assert len(planner.tasks(replace(options(), parallelism=1))) == 1


def test_tasks_when_more_are_wanted_than_there_are_segments_then_about_as_many() -> None:
    planner = Planner((ORDERS,), snapshot(three_segments()), {}, leases())

    assert 6 <= len(planner.tasks(replace(options(), min_partitions=6))) <= 9
    assert planner.tasks(replace(options(**bounds(0, 0)), min_partitions=6)) == []


def test_batch_when_planned_then_one_line_says_what_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    planner = Planner(BOTH, snapshot(), {}, leases())

    tasks = planner.batch(options(**bounds(10, 20)))

    (line,) = [each for each in caplog.messages if each.startswith("planned")]
    assert len(tasks) == 2
    assert line.startswith("planned orders (partitions: 2, segments: 2, ")
    assert "tasks: 2" in line


def test_summary_when_bounded_then_counts_what_the_tasks_would_read() -> None:
    planner = Planner(BOTH, snapshot(), {}, leases())

    summary = planner.summary(options(**bounds(10, 20)))

    assert [(each.topic_id_partition, each.segments) for each in summary] == [
        (ORDERS, 1),
        (SECOND, 1),
    ]
    assert summary[0].offsets == OffsetRange(start_offset=10, end_offset=20)


def test_batch_when_one_partition_of_a_topic_has_segments_then_does_not_warn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The other partition may have been empty since its creation."""
    log = MemoryLog(ManualClock())
    append(log, claim())
    append(log, step(segment_metadata(), FINISHED))
    planner = Planner(BOTH, snapshot(log), {}, leases())

    assert len(planner.batch(options())) == 1
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_partition_when_its_metadata_was_read_then_has_what_is_stored() -> None:
    found = Planner(BOTH, snapshot(), {}, leases()).partition(SECOND)

    assert (found.topic_id_partition, len(found.segments)) == (SECOND, 1)


def test_batch_when_the_topic_was_never_tiered_then_refused_if_it_is_named() -> None:
    planner = Planner(BOTH, snapshot(MemoryLog(ManualClock())), {}, leases())

    with pytest.raises(InvalidConfigError, match="it was never tiered"):
        planner.batch(options())

    assert planner.batch(ReadOptions.of({"subscribePattern": "ord.*"})) == []


def test_batch_when_nothing_is_stored_of_a_tiered_topic_then_logs_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One claim shows that the topic is tiered; its other partition may have no leader."""
    caplog.set_level(logging.INFO)
    log = MemoryLog(ManualClock())
    append(log, claim())
    planner = Planner(BOTH, snapshot(log), {}, leases())

    assert planner.batch(options()) == []
    assert "the topic has no stored segments topic=orders" in caplog.messages


def test_batch_when_several_topics_are_read_then_each_is_judged_alone() -> None:
    """The stored segments of one topic say nothing of another."""
    other = replace(ORDERS, topic="other", topic_id=UUID(int=77))
    planner = Planner((*BOTH, other), snapshot(), {}, leases())

    with pytest.raises(InvalidConfigError, match="it was never tiered") as refused:
        planner.batch(ReadOptions.of({"subscribe": "orders,other"}))

    assert refused.value.context["topic"] == "other"


def test_stored_when_more_was_stored_since_then_it_is_known() -> None:
    log = two_partitions()
    planner = Planner(BOTH, snapshot(log), {}, leases())

    append(log, step(segment_metadata(3, 100, 200), FINISHED))

    assert [len(each.segments) for each in planner.read_stored()] == [2, 1]


def test_pieces_when_the_broker_has_more_than_is_stored_then_the_rest_is_read_there() -> None:
    metadata = snapshot()
    local = {ORDERS: OffsetRange(start_offset=50, end_offset=130)}

    pieces = _planned([metadata.partition(ORDERS)], options(endingOffsets="latest"), local)

    assert [
        (type(each), *offsets) for each, offsets in zip(pieces, offsets_of(pieces), strict=True)
    ] == [
        (SegmentPiece, 0, 100),
        (BrokerPiece, 100, 130),
    ]
