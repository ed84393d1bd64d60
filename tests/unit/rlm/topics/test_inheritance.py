"""Levels reach topics only by the topics' own policies, written by one manager."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.level_effects import LevelEffects
from rlmm.events.policy import PolicySetting, PolicyState, topic_policies
from rlmm.events.policy_level import PolicyLevel, remove_policy_level
from rsm.segment.errors import InvalidConfigError, RetriableError
from tests.unit.rlm.topics.tiering_world import PUBLISH, TIMEOUT_MS, TOPIC, WEEK_MS, Process, World

DAY_MS = WEEK_MS // 7
ORDERS = PolicyLevel(pattern="orders*", retention_ms=DAY_MS, local_retention_ms=60_000)


class CountedLevels(list[PolicyLevel]):
    """Levels that count how often all of them are searched."""

    passes = 0

    def __iter__(self) -> Iterator[PolicyLevel]:
        self.passes += 1
        return super().__iter__()


@pytest.fixture
def world() -> World:
    return World()


def tiered(world: World, level: PolicyLevel = ORDERS) -> Process:
    """A process of a cluster in which a pattern has tiered the topic."""
    process = world.process()
    process.set_level(level)
    process.inheritance().step()
    process.keeper().step()
    process.keeper().step()
    return process


def test_step_when_a_pattern_matches_then_tiers_the_topic_with_its_values(world: World) -> None:
    process = tiered(world)

    policy = process.policy()
    assert policy.state is PolicyState.ACTIVE
    assert (policy.retention_ms, policy.local_retention_ms) == (DAY_MS, 60_000)
    assert (policy.untiered_retention_ms, policy.retention_bytes) == (WEEK_MS, -1)
    assert policy.inherited == frozenset(PolicySetting)
    assert world.topics.overrides == {"retention.ms": "-1", "retention.bytes": "-1"}


def test_step_when_another_broker_leads_the_first_partition_then_leaves_it_to_that_one(
    world: World,
) -> None:
    process = world.process()
    process.set_level(ORDERS)

    process.inheritance(node_id=2).step()

    assert topic_policies(process.metadata) == ()


def test_step_when_the_pattern_is_removed_meanwhile_then_tiers_nothing(world: World) -> None:
    """`rlm uninstall` removes the patterns first, and then looks for tiered topics."""
    process = world.process()
    process.set_level(ORDERS)
    world.topics.when_asked = lambda: remove_policy_level(process.metadata, ORDERS.pattern)

    process.inheritance().step()

    assert topic_policies(process.metadata) == ()


@pytest.mark.parametrize("pattern", ["", "payments*", "orders-*"])
def test_step_when_no_pattern_matches_then_nothing_is_tiered(world: World, pattern: str) -> None:
    process = world.process()
    process.set_level(PolicyLevel(pattern=pattern, retention_ms=1))

    process.inheritance().step()

    assert topic_policies(process.metadata) == ()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("cleanup.policy", "compact"), ("remote.storage.enable", "true"), ("retention.ms", "30000")],
)
def test_step_when_the_topic_cannot_be_tiered_then_is_skipped(
    world: World, setting: str, value: str
) -> None:
    """In the last case, the topic's retention is below the pattern's local retention."""
    process = world.process()
    process.set_level(ORDERS)
    world.topics.set({setting: value})

    process.inheritance().step()

    assert topic_policies(process.metadata) == ()


def test_step_when_the_broker_does_not_return_the_settings_then_is_skipped(world: World) -> None:
    process = world.process()
    process.set_level(ORDERS)
    world.topics.configs_error = RetriableError("no right")

    process.inheritance().step()

    assert topic_policies(process.metadata) == ()


def test_step_when_tiering_was_disabled_then_patterns_do_not_tier_the_topic_again(
    world: World,
) -> None:
    process = tiered(world)
    process.ending.disable(TOPIC, delete_remote=False, force=False, timeout_ms=TIMEOUT_MS)

    process.inheritance().step()

    assert process.policy().state is PolicyState.DISABLED


def test_disable_when_only_a_pattern_would_tier_the_topic_then_it_never_does(world: World) -> None:
    process = world.process()
    process.set_level(ORDERS)
    process.ending.disable(TOPIC, delete_remote=False, force=False, timeout_ms=TIMEOUT_MS)

    process.inheritance().step()

    assert process.policy().state is PolicyState.DISABLED
    assert world.topics.overrides == {}


def test_disable_when_no_pattern_tiers_the_topic_then_is_refused(world: World) -> None:
    process = world.process()
    process.set_level(PolicyLevel(pattern="", retention_ms=1))

    with pytest.raises(InvalidConfigError, match="topic is not tiered"):
        process.ending.disable(TOPIC, delete_remote=False, force=False, timeout_ms=TIMEOUT_MS)


def test_step_when_a_level_changes_then_only_inherited_settings_follow(world: World) -> None:
    process = tiered(world)
    flags = PolicyFlags(local_retention_ms=5)
    process.tiering.enable(TOPIC, flags, timeout_ms=TIMEOUT_MS)

    process.set_level(replace(ORDERS, retention_ms=2 * DAY_MS, local_retention_ms=7))
    process.inheritance().step()

    policy = process.policy()
    assert policy.state is PolicyState.ACTIVE
    assert (policy.retention_ms, policy.local_retention_ms) == (2 * DAY_MS, 5)


def test_step_when_the_pattern_is_removed_then_the_topic_stays_tiered_as_before_the_pattern(
    world: World,
) -> None:
    process = tiered(world)

    remove_policy_level(process.metadata, ORDERS.pattern)
    process.inheritance().step()

    policy = process.policy()
    assert policy.state is PolicyState.ACTIVE
    assert (policy.retention_ms, policy.local_retention_ms) == (WEEK_MS, -2)


def test_step_when_the_new_values_contradict_the_topics_own_then_the_policy_stays(
    world: World,
) -> None:
    process = tiered(world)
    process.tiering.enable(TOPIC, PolicyFlags(local_retention_ms=DAY_MS), timeout_ms=TIMEOUT_MS)
    before = process.policy()

    process.set_level(replace(ORDERS, retention_ms=60_000))
    process.inheritance().step()

    assert process.policy() == before


def test_step_when_nothing_changed_then_writes_nothing(world: World) -> None:
    process = tiered(world)
    written = world.effects.log.count(PUBLISH)

    process.inheritance().step()

    assert world.effects.log.count(PUBLISH) == written


def test_step_when_an_earlier_version_tiered_the_topic_then_no_level_changes_it(
    world: World,
) -> None:
    """**Data loss:** a pattern that appears must not shorten what such a topic keeps."""
    process = world.process()
    process.tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)
    earlier = replace(process.policy(), inherited=frozenset(), untiered_retention_ms=None)
    process.overwrite(earlier)
    process.set_level(ORDERS)

    process.inheritance().step()

    assert process.policy() == earlier


def test_step_when_the_managers_file_gives_a_setting_then_inheriting_topics_have_it(
    world: World,
) -> None:
    """No level in the metadata topic is needed. Without the file, the former value returns."""
    process = world.process()
    process.tiering.enable(TOPIC, PolicyFlags(copy_lag_ms=0), timeout_ms=TIMEOUT_MS)
    file = FileDefaults(values={PolicySetting.LOCAL_RETENTION_MS: 5, PolicySetting.COPY_LAG_MS: 3})

    process.inheritance(managers=file).step()
    given = process.policy()
    process.inheritance().step()

    assert (given.state, given.local_retention_ms, given.copy_lag_ms) == (PolicyState.ACTIVE, 5, 0)
    assert process.policy().local_retention_ms == -2


def test_step_when_the_managers_file_contradicts_the_topic_then_the_topic_stays_as_it_is(
    world: World,
) -> None:
    process = world.process()
    process.tiering.enable(TOPIC, PolicyFlags(retention_ms=1_000), timeout_ms=TIMEOUT_MS)
    before = process.policy()
    file = FileDefaults(values={PolicySetting.LOCAL_RETENTION_MS: 2_000})

    process.inheritance(managers=file).step()

    assert process.policy() == before


def test_step_when_the_topic_was_away_then_its_obstacle_is_logged_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The manager forgets a topic that was deleted or moved."""
    caplog.set_level("INFO")
    process = world.process()
    process.set_level(ORDERS)
    world.topics.set({"cleanup.policy": "compact"})
    inheritance = process.inheritance()

    for node_ids in ((1, 2), (1, 2), (2, 1), (1, 2)):
        world.topics.node_ids = node_ids
        inheritance.step()

    lines = [each.getMessage() for each in caplog.records]
    assert sum("topic does not follow the policy levels" in line for line in lines) == 2


def test_effects_when_there_are_many_levels_then_each_topic_looks_only_at_its_own(
    world: World,
) -> None:
    levels = CountedLevels([ORDERS, *(PolicyLevel(pattern=f"p{each}-*") for each in range(99))])
    effects = LevelEffects(
        world.topics, recall=world.recall, own_topics=frozenset(), managers=FileDefaults()
    )
    (view,) = world.topics.view(None).topics.values()

    found = effects.of([view] * 3, levels, {}, node_id=1)

    assert [each.pattern for each in found] == ["orders*"] * 3
    assert levels.passes == 1
