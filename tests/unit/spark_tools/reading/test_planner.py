"""What is leased and read of the partitions that the options choose."""

from __future__ import annotations

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
from spark_tools.reading.planner import PlanLeases, Planner, _choose, _require_assigned, _with_added
from spark_tools.snapshot import MetadataSnapshot
from tests.folding import append
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import FINISHED, ORDERS, claim, segment_metadata, step
from tests.unit.spark_tools.reading.test_plan import bounds, offsets_of

_MAX_OFFSET = (1 << 63) - 1

SECOND = replace(ORDERS, partition=1)
BOTH = (ORDERS, SECOND)


def snapshot() -> MetadataSnapshot:
    """Two partitions, each with a segment of 100 offsets."""
    clock = ManualClock()
    log = MemoryLog(clock)
    for number, tip in enumerate(BOTH, start=1):
        append(log, claim(partition=tip))
        append(log, step(segment_metadata(number, partition=tip), FINISHED))
    cache = MetadataCache(MemoryStore())
    settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))
    manager = TopicBasedRemoteLogMetadataManager(MemoryTopic(log), cache, clock, settings)
    assert manager.wait_ready(10_000).ready

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


def test_pieces_when_no_lease_is_wanted_then_none_is_taken() -> None:
    metadata = snapshot()

    Planner(BOTH, metadata, {}, leases()).tasks(options(leaseMs="0"))

    assert leased(metadata) == []


def test_pieces_when_nothing_is_wanted_then_no_lease_is_taken() -> None:
    metadata = snapshot()

    assert Planner((ORDERS,), metadata, {}, leases()).tasks(options(**bounds(0, 0))) == []
    assert leased(metadata) == []


def test_partitions_when_one_is_assigned_that_there_is_not_then_said() -> None:
    found = {"orders": BOTH}
    _require_assigned(found, options(assign='{"orders":[0,1]}'))
    _require_assigned(found, options())

    with pytest.raises(InvalidConfigError, match="no such partition") as refused:
        _require_assigned(found, options(assign='{"orders":[0,3,2]}'))

    assert refused.value.context == {"topic": "orders", "found": 2}


def test_partitions_when_some_are_assigned_then_only_they_are_chosen() -> None:
    found = {"orders": BOTH}

    assert _choose(found, options()) == [*BOTH]
    assert _choose(found, options(assign='{"orders":[1]}')) == [SECOND]


def test_partitions_when_looked_for_again_then_only_new_ones_are_added() -> None:
    """A topic that was deleted and created again stays the one that the query began with."""
    third = replace(ORDERS, partition=2)
    created_again = replace(ORDERS, topic_id=UUID(int=2))

    assert _with_added(BOTH, [*BOTH, third]) == (*BOTH, third)
    assert _with_added(BOTH, [created_again]) == BOTH


def test_cluster_when_asked_then_the_client_gets_the_timeout_of_the_options() -> None:
    """The client refuses more than its maximum before it asks anybody."""
    planner = Planner(BOTH, snapshot(), {"bootstrap.servers": "127.0.0.1:1"}, leases())
    given = options(endingOffsets="latest", timeoutMs=str(MAX_TIMEOUT_MS + 1))

    for ask in (planner.look_for_new, planner.tasks):
        with pytest.raises(InvalidConfigError, match=f"at_most={MAX_TIMEOUT_MS}"):
            ask(given)


def test_tasks_when_cores_are_known_then_small_segments_are_joined_unless_more_are_wanted() -> None:
    planner = Planner(BOTH, snapshot(), {}, leases())
    known = replace(options(), parallelism=1)

    assert len(planner.tasks(options())) == len(planner.tasks(known)) == 2
    assert len(planner.tasks(replace(known, min_partitions=6))) >= 6
