"""Fetches and offset lookups agree on the log start."""

from __future__ import annotations

import pytest

from rlm.gateway.fetch.remote_log_bounds import LookupCache, MetadataLogBoundsView
from rlmm.lookup import log_start_offset
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import TopicIdPartition
from tests.remote_world import TIP, segment_of
from tests.unit.rlm.gateway.gateway_world import GatewayWorld


@pytest.mark.parametrize("local_start", [0, 50, 300])
@pytest.mark.parametrize("recorded", [None, 40, 200])
@pytest.mark.parametrize("is_stored", [True, False])
def test_log_start_when_asked_for_by_either_then_is_one(
    *, is_stored: bool, recorded: int | None, local_start: int
) -> None:
    """R15.

    If nothing is stored any more, the start of the broker's log may have moved by itself.
    """
    world = GatewayWorld()
    world.remote.claim()
    if is_stored:
        world.remote.store(segment_of(0))
    if recorded is not None:
        world.remote.advance_log_start(recorded)
    assert world.metadata.caught_up(TIP)

    facts = MetadataLogBoundsView(world.metadata, world.remote.clock).facts(TIP)

    expected = log_start_offset(world.metadata, TIP, local_start)
    assert facts.log_start(local_start) == expected
    if not is_stored:
        assert expected == max(local_start, recorded or 0)


def test_facts_when_nothing_changed_then_are_not_looked_up_again() -> None:
    """A fetch may name all partitions of a broker, twice a second."""
    world = GatewayWorld()
    world.remote.claim()
    world.remote.advance_log_start(40)
    assert world.metadata.caught_up(TIP)
    view = MetadataLogBoundsView(world.metadata, world.remote.clock)

    before = view.facts(TIP)
    world.remote.clock.now_ms += 3_600_000
    unchanged = view.facts(TIP)
    world.remote.advance_log_start(200)
    assert world.metadata.caught_up(TIP)
    world.remote.clock.now_ms += 1
    changed = view.facts(TIP)

    assert before.recorded_start_offset == 40
    assert unchanged is before
    assert changed.recorded_start_offset == 200


def test_kept_look_up_when_another_thread_saw_a_change_meanwhile_then_not_kept() -> None:
    """Otherwise the gateway would use the result from before the change."""
    world = GatewayWorld()
    world.remote.claim()
    world.remote.advance_log_start(40)
    assert world.metadata.caught_up(TIP)
    looked_up: list[PartitionState] = []

    def look_up(partition: TopicIdPartition) -> PartitionState:
        state = world.metadata.partition_state(partition)
        looked_up.append(state)
        if len(looked_up) == 1:
            world.remote.advance_log_start(200)
            assert world.metadata.caught_up(TIP)
            kept.forget_changed()
        return state

    kept = LookupCache(world.metadata, look_up)
    kept.forget_changed()

    starts = [kept.get(TIP).log_start_offset for _ in range(3)]

    assert starts == [40, 200, 200]
    assert len(looked_up) == 2
