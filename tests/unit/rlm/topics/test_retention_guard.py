"""R9, D1, scenario 83: broker retention that is shorter than safe is noticed, and put back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.topic.topic_policy import PolicyFlags
from rlmm.events.policy import PolicyState
from rsm.segment.errors import RetriableError
from tests.unit.rlm.topics.tiering_world import (
    ALTER,
    TIMEOUT_MS,
    TOPIC,
    TOPIC_ID,
    World,
)

LIFTED = {"retention.ms": "-1", "retention.bytes": "-1"}


def tiered_world() -> World:
    world = World()
    world.process().tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)
    world.effects.log.clear()
    return world


def test_step_when_retention_was_changed_then_alarms_and_puts_it_back_at_once() -> None:
    """Scenario 83."""
    world = tiered_world()
    world.topics.set({"retention.ms": "60000"})
    process = world.process()

    report = process.keeper().step()

    assert world.topics.overrides == LIFTED
    assert process.alarms == [TOPIC]
    assert report.limited == {TOPIC_ID: "retention.ms=60000 retention.bytes=-1"}


def test_step_when_set_not_to_reassert_then_only_alarms() -> None:
    world = tiered_world()
    world.topics.set({"retention.ms": None})
    process = world.process()

    report = process.keeper(reassert=False).step()

    assert world.effects.log == []
    assert process.alarms == [TOPIC]
    assert TOPIC_ID in report.limited


def test_step_when_nothing_was_changed_then_does_nothing() -> None:
    world = tiered_world()
    process = world.process()

    report = process.keeper().step()

    assert (report.untierable, report.limited) == ({}, {})
    assert world.effects.log == []


def test_step_when_another_broker_leads_partition_0_then_leaves_it_to_its_manager() -> None:
    world = tiered_world()
    world.topics.set({"retention.ms": "60000"})

    world.process().keeper(node_id=2).step()

    assert world.effects.log == []


def test_step_when_topic_became_compacted_then_every_host_reports_it_untierable() -> None:
    """R9: the manager reads cleanup.policy in each cycle, and does not change such a topic."""
    world = tiered_world()
    world.topics.set({"cleanup.policy": "compact,delete"})

    report = world.process().keeper(node_id=2).step()

    assert report.untierable == {TOPIC_ID: "cleanup.policy=compact,delete, must be delete"}


def test_step_when_the_broker_does_not_return_settings_then_only_that_topic_is_blocked() -> None:
    """R9: DescribeConfigs is denied on the topic, or a broker does not know the topic yet."""
    world = tiered_world()
    world.topics.configs_error = RetriableError("missing rights on the topic", topic=TOPIC)
    keeper = world.process().keeper()

    denied = keeper.step()
    world.topics.configs_error = None
    granted = keeper.step()

    assert "missing rights on the topic" in denied.untierable[TOPIC_ID]
    assert granted.untierable == {}


def test_step_when_brokers_lag_behind_an_enabling_then_finishes_it_in_a_later_step() -> None:
    """R9: ACTIVE only when every replica's broker has read back -1."""
    world = tiered_world()
    process = world.process()
    process.overwrite(replace(process.policy(), state=PolicyState.ENABLING))
    world.topics.set({"retention.ms": "60000"})
    world.topics.lag_asks = 1
    keeper = process.keeper()

    keeper.step()
    between = process.policy().state
    world.topics.lag_asks = 0
    keeper.step()

    assert between is PolicyState.ENABLING
    assert process.policy().state is PolicyState.ACTIVE


@pytest.mark.parametrize("state", [PolicyState.ENABLING, PolicyState.ACTIVE])
def test_step_when_the_topic_is_disabled_meanwhile_then_the_restored_retention_stays(
    state: PolicyState,
) -> None:
    """**Data growth:** nothing would delete its records any more."""
    world = tiered_world()
    process = world.process()
    policy = process.policy()
    process.overwrite(replace(policy, state=state))
    restored = {"retention.ms": "60000"}
    world.topics.set({**restored, "retention.bytes": None})
    world.topics.when_asked = lambda: process.overwrite(replace(policy, state=PolicyState.DISABLED))

    process.keeper().step()

    assert world.topics.overrides == restored
    assert process.policy().state is PolicyState.DISABLED


def test_step_when_topic_is_disabling_then_its_retention_is_the_commands_matter() -> None:
    world = tiered_world()
    process = world.process()
    process.overwrite(replace(process.policy(), state=PolicyState.DISABLING))
    world.topics.set({"retention.ms": "1000"})
    world.effects.log.clear()

    process.keeper().step()

    assert ALTER not in world.effects.log
    assert process.alarms == []


def test_step_when_the_topic_was_created_again_then_the_old_policy_touches_nothing() -> None:
    world = tiered_world()
    process = world.process()
    process.overwrite(replace(process.policy(), topic="gone"))
    world.effects.log.clear()

    report = process.keeper().step()

    assert report.limited == {}
    assert world.effects.log == []
