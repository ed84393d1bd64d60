"""The proof that is required before a client gets OFFSET_OUT_OF_RANGE."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from concurrent.futures import Future

import pytest

from rlm.gateway.fetch.remote_result import (
    FetchOutcome,
    GapBelow,
    LogDivergence,
    ReadRefused,
    RemoteSlice,
    SliceRequest,
)
from rlm.gateway.model.actions import PartitionFetch
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from rlm.wire.error_codes import ErrorCode
from rlmm.lookup import NotStored, locate
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.remote_world import TIP, segment_of
from tests.unit.rlm.gateway.gateway_world import GatewayWorld

_OUT_OF_RANGE = ReadRefused(ErrorCode.OFFSET_OUT_OF_RANGE)
_STORAGE_ERROR = ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR)


class _Fetcher:
    """Records the requests that it gets."""

    def __init__(self) -> None:
        self.asked: list[SliceRequest] = []
        self.states: list[PartitionState] = []

    def fetch(self, fetch: SliceRequest, state: PartitionState) -> Future[FetchOutcome]:
        self.asked.append(fetch)
        self.states.append(state)
        return Future()

    def read_now(self, fetch: SliceRequest, state: PartitionState) -> RemoteSlice | None:
        self.asked.append(fetch)
        self.states.append(state)
        return None

    def forget(self, client: Hashable) -> None:
        """Do nothing: nothing is kept for the client."""


@pytest.fixture
def world() -> GatewayWorld:
    """Offsets 0 to 200 are stored, and trimmed to 200; epoch 1 began at 150."""
    world = GatewayWorld()
    lineage = Lineage.of((0, 0), (1, 150))
    world.remote.claim(lineage)
    for base in (0, 100):
        world.remote.store(segment_of(base))
    world.trim(200, lineage)
    return world


def _read(
    offset: int, *, local_start: int = 200, last_epoch: int = -1, is_above_end: bool = False
) -> PartitionFetch:
    return PartitionFetch(
        topic_id_partition=TIP,
        offset=offset,
        max_bytes=1_000,
        local_start_offset=local_start,
        last_fetched_epoch=last_epoch,
        is_above_end=is_above_end,
    )


def _begin(
    world: GatewayWorld, read: PartitionFetch, fetcher: _Fetcher | None = None
) -> Future[FetchOutcome] | ReadRefused | LogDivergence:
    reader = RemotePartitionReader(world.metadata, fetcher or _Fetcher())
    return reader.begin(read, read_committed=True, client=1)


def _absent(world: GatewayWorld, read: PartitionFetch) -> ReadRefused | GapBelow:
    found = locate(world.metadata, TIP, read.offset)
    assert isinstance(found, NotStored)
    return RemotePartitionReader(world.metadata, _Fetcher()).absent(read, found)


def test_begin_when_the_offset_was_trimmed_then_it_is_fetched_without_asking_the_topic(
    world: GatewayWorld,
) -> None:
    assert world.metadata.caught_up(TIP)
    world.topic.is_cut = True
    fetcher = _Fetcher()

    _begin(world, _read(50), fetcher)

    assert [(each.offset, each.max_bytes, each.client) for each in fetcher.asked] == [(50, 1000, 1)]
    assert fetcher.states == [world.metadata.partition_state(TIP)]


def test_begin_when_the_broker_lost_what_is_not_known_to_be_trimmed_then_asks_the_topic_first(
    world: GatewayWorld,
) -> None:
    """R15: a later leader may have written another history."""
    world.topic.is_cut = True

    with pytest.raises(RetriableError):
        _begin(world, _read(200))


def test_begin_when_above_the_end_of_both_tiers_then_it_is_out_of_range(
    world: GatewayWorld,
) -> None:
    """Scenario 47."""
    assert _begin(world, _read(900, is_above_end=True)) == _OUT_OF_RANGE


def test_begin_when_above_the_brokers_end_but_stored_then_it_is_not_out_of_range(
    world: GatewayWorld,
) -> None:
    """R5: the broker's log ends below the end of the stored log."""
    assert _begin(world, _read(120, is_above_end=True)) == _STORAGE_ERROR


def test_begin_when_above_the_end_but_the_topic_is_out_of_reach_then_nothing_is_said(
    world: GatewayWorld,
) -> None:
    """R15."""
    world.topic.is_cut = True

    with pytest.raises(RetriableError):
        _begin(world, _read(900, is_above_end=True))


@pytest.mark.parametrize(("offset", "last_epoch"), [(160, 0), (199, 0)])
def test_begin_when_the_reader_comes_from_a_history_cut_off_then_learns_where_it_ended(
    world: GatewayWorld, offset: int, last_epoch: int
) -> None:
    """Scenario 49: epoch 0 ended at 150."""
    found = _begin(world, _read(offset, last_epoch=last_epoch))

    assert found == LogDivergence(epoch=0, end_offset=150)


@pytest.mark.parametrize(("offset", "last_epoch"), [(150, 0), (160, 1), (40, 0)])
def test_begin_when_the_readers_epoch_is_of_this_history_then_it_is_fetched(
    world: GatewayWorld, offset: int, last_epoch: int
) -> None:
    assert isinstance(_begin(world, _read(offset, last_epoch=last_epoch)), Future)


def test_absent_when_below_the_log_start_then_it_is_out_of_range(world: GatewayWorld) -> None:
    """Scenario 47."""
    world.remote.advance_log_start(120)
    assert world.metadata.caught_up(TIP)

    assert _absent(world, _read(50)) == _OUT_OF_RANGE


def test_absent_when_the_topic_is_out_of_reach_then_nothing_is_said(world: GatewayWorld) -> None:
    """R15."""
    world.remote.advance_log_start(120)
    assert world.metadata.caught_up(TIP)
    world.topic.is_cut = True

    with pytest.raises(RetriableError):
        _absent(world, _read(50))


def test_absent_when_in_a_hole_between_the_tiers_then_it_is_not_out_of_range(
    world: GatewayWorld,
) -> None:
    """R6: OFFSET_OUT_OF_RANGE would make readers skip offsets, or loop."""
    assert _absent(world, _read(250, local_start=300)) == _STORAGE_ERROR


def _behind(world: GatewayWorld, offset: int, found_at: int, local_start: int) -> object:
    """Return the answer if no batch is stored from `offset` on and nothing above `found_at`."""
    found = locate(world.metadata, TIP, found_at)
    assert isinstance(found, NotStored)
    reader = RemotePartitionReader(world.metadata, _Fetcher())
    return reader.absent(_read(offset, local_start=local_start), found)


@pytest.mark.parametrize("local_start", [150, 199, 200])
def test_absent_when_in_a_gap_that_ends_in_the_brokers_log_then_the_broker_is_to_be_asked(
    world: GatewayWorld, local_start: int
) -> None:
    """Scenario 56: the last stored segment ends in a compaction gap."""
    assert _behind(world, 195, 200, local_start) == GapBelow(200)


def test_absent_when_something_is_missing_after_a_gap_then_it_is_not_stepped_over(
    world: GatewayWorld,
) -> None:
    """Scenario 63, R6."""
    assert _behind(world, 195, 200, 210) == _STORAGE_ERROR


def test_absent_when_the_topic_is_out_of_reach_then_no_gap_is_stepped_over(
    world: GatewayWorld,
) -> None:
    world.topic.is_cut = True

    with pytest.raises(RetriableError):
        _behind(world, 195, 200, 200)


def test_absent_when_what_follows_a_gap_was_stored_meanwhile_then_it_is_asked_for_again(
    world: GatewayWorld,
) -> None:
    read = _read(195)
    found = locate(world.metadata, TIP, 200)
    assert isinstance(found, NotStored)
    world.remote.store(segment_of(200, leader_epoch=1), lineage=Lineage.of((0, 0), (1, 150)))

    assert RemotePartitionReader(world.metadata, _Fetcher()).absent(read, found) == _STORAGE_ERROR


def test_begin_when_the_readers_epoch_is_newer_than_any_known_then_nothing_is_said(
    world: GatewayWorld,
) -> None:
    """R15: the broker may have begun that epoch."""
    assert _begin(world, _read(160, last_epoch=2)) == _STORAGE_ERROR


def test_begin_when_the_readers_epoch_is_older_than_any_known_then_it_has_diverged(
    world: GatewayWorld,
) -> None:
    """As Kafka's LeaderEpochFileCache: the reader's epoch, and the start of the first known one."""
    lineage = Lineage.of((3, 10), (4, 150))
    world.remote.claim(lineage)
    world.trim(200, lineage)
    assert world.metadata.caught_up(TIP)

    assert _begin(world, _read(50, last_epoch=1)) == LogDivergence(epoch=1, end_offset=10)


def test_absent_when_it_was_stored_meanwhile_then_it_is_asked_for_again(
    world: GatewayWorld,
) -> None:
    """Scenario 111."""
    read = _read(250, local_start=300)
    found = locate(world.metadata, TIP, read.offset)
    assert isinstance(found, NotStored)
    world.remote.store(segment_of(200))

    refused = RemotePartitionReader(world.metadata, _Fetcher()).absent(read, found)

    assert refused == _STORAGE_ERROR


def test_ready_when_the_offset_was_trimmed_then_asked_for_with_the_current_state(
    world: GatewayWorld,
) -> None:
    assert world.metadata.caught_up(TIP)
    world.topic.is_cut = True
    fetcher = _Fetcher()
    reader = RemotePartitionReader(world.metadata, fetcher)

    assert reader.read_now(_read(50), read_committed=True, client=1) is None

    assert [(each.offset, each.max_bytes, each.client) for each in fetcher.asked] == [(50, 1000, 1)]
    assert fetcher.states == [world.metadata.partition_state(TIP)]


@pytest.mark.parametrize(
    "read", [_read(200), _read(900, is_above_end=True), _read(160, last_epoch=0)]
)
def test_ready_when_something_has_to_be_proven_first_then_nothing_is_read(
    world: GatewayWorld, read: PartitionFetch
) -> None:
    """R15, scenarios 47 and 49: `begin` decides about all other offsets."""
    assert world.metadata.caught_up(TIP)
    fetcher = _Fetcher()

    assert (
        RemotePartitionReader(world.metadata, fetcher).read_now(read, read_committed=True, client=1)
        is None
    )

    assert fetcher.asked == []


class _Behind(TopicBasedRemoteLogMetadataManager):
    """Never catches up; records the time limits that it got."""

    def __init__(self) -> None:
        self.timeouts_ms: list[int | None] = []

    def those_caught_up(
        self, partitions: Iterable[TopicIdPartition], *, timeout_ms: int | None = None
    ) -> frozenset[TopicIdPartition]:
        self.timeouts_ms.append(timeout_ms)
        return frozenset()


def test_begin_when_the_topic_is_not_followed_in_time_then_waits_no_longer() -> None:
    """A fetch that waits for the metadata topic's end delays other reads only briefly."""
    metadata = _Behind()
    reader = RemotePartitionReader(metadata, _Fetcher(), catch_up_ms=300)

    with pytest.raises(RetriableError, match="cannot follow the metadata topic"):
        reader.begin(_read(200, is_above_end=True), read_committed=True, client=1)

    assert metadata.timeouts_ms == [300]
