"""R9, D1: the order in which a topic's tiering is enabled, and that a rerun finishes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.broker_retention import POLL_INTERVAL_MS
from rlmm.events.policy import OriginalConfig, PolicyState
from rsm.segment.errors import FencedError, InvalidConfigError, NotFoundError, RetriableError
from tests.unit.rlm.topics.tiering_world import (
    ALTER,
    PUBLISH,
    TIMEOUT_MS,
    TOPIC,
    TOPIC_ID,
    WEEK_MS,
    CrashError,
    Process,
    World,
)

LIFTED = {"retention.ms": "-1", "retention.bytes": "-1"}


def enable(process: Process, **flags: int) -> PolicyState:
    flags_given = PolicyFlags(**flags)  # type: ignore[arg-type]  # flags of numbers only
    return process.tiering.enable(TOPIC, flags_given, timeout_ms=TIMEOUT_MS).state


def originals(process: Process) -> dict[str, str | None]:
    return {each.name: each.value for each in process.policy().originals}


def test_enable_when_topic_is_new_then_records_originals_before_it_lifts_retention() -> None:
    world = World()
    world.topics.set({"retention.ms": "1000"})
    process = world.process()

    assert enable(process) is PolicyState.ACTIVE

    assert world.effects.log == [PUBLISH, ALTER, PUBLISH]
    assert world.topics.overrides == LIFTED
    assert originals(process) == {"retention.ms": "1000", "retention.bytes": None}
    assert process.policy().retention_ms == 1000


@pytest.mark.parametrize("crash_before", [0, 1, 2])
def test_enable_when_killed_before_an_effect_then_a_rerun_finishes_with_true_originals(
    crash_before: int,
) -> None:
    """R9: the original is on record before the broker's retention is gone."""
    world = World()
    world.topics.set({"retention.ms": "1000"})
    world.effects.crash_before = crash_before
    with pytest.raises(CrashError):
        enable(world.process(), local_retention_ms=5)
    lifted, recorded = world.topics.overrides == LIFTED, bool(world.log.records(0))
    assert recorded or not lifted

    process = world.restart()
    assert enable(process, local_retention_ms=5) is PolicyState.ACTIVE

    assert originals(process) == {"retention.ms": "1000", "retention.bytes": None}
    assert world.topics.overrides == LIFTED
    assert (process.policy().retention_ms, process.policy().local_retention_ms) == (1000, 5)


@pytest.mark.parametrize("crash_after", [0, 1, 2])
def test_enable_when_killed_after_an_effect_then_the_manager_finishes_what_was_started(
    crash_after: int,
) -> None:
    """R9: managers finish an ENABLING that a command has left."""
    world = World()
    world.effects.crash_after = crash_after
    with pytest.raises(CrashError):
        enable(world.process())

    manager = world.restart()
    manager.keeper().step()

    assert manager.policy().state is PolicyState.ACTIVE
    assert world.topics.overrides == LIFTED
    assert originals(manager) == {"retention.ms": None, "retention.bytes": None}


def test_enable_when_one_replicas_broker_lags_then_is_not_active_before_it_follows() -> None:
    """R9: the command reads the settings back from the broker of every replica."""
    world = World()
    world.topics.lag_asks = 5

    assert enable(world.process()) is PolicyState.ACTIVE

    assert sum(world.clock.slept_ms) == 5 * POLL_INTERVAL_MS


def test_enable_when_a_broker_never_follows_then_stays_enabling() -> None:
    """R9: a topic is ACTIVE only if the broker of every replica follows."""
    world = World()
    world.topics.lag_asks = 10**9
    process = world.process()

    with pytest.raises(RetriableError, match="another value"):
        enable(process)

    assert process.policy().state is PolicyState.ENABLING


def test_enable_when_topic_is_not_known_yet_then_waits_for_it() -> None:
    world = World()
    world.topics.unknown_asks = 20

    assert enable(world.process()) is PolicyState.ACTIVE


def test_enable_when_topic_is_not_known_in_time_then_says_so_and_writes_nothing() -> None:
    world = World()
    world.topics.unknown_asks = 10**9

    with pytest.raises(NotFoundError):
        enable(world.process())

    assert world.effects.log == []


def test_enable_when_active_and_still_lifted_then_publishes_the_new_policy_only() -> None:
    world = World()
    process = world.process()
    enable(process)
    world.effects.log.clear()

    assert enable(process, retention_ms=WEEK_MS * 4) is PolicyState.ACTIVE

    assert world.effects.log == [PUBLISH]
    assert process.policy().retention_ms == WEEK_MS * 4


def test_enable_when_active_and_nothing_changes_then_writes_nothing() -> None:
    world = World()
    process = world.process()
    enable(process)
    world.effects.log.clear()

    assert enable(process) is PolicyState.ACTIVE

    assert world.effects.log == []


def test_enable_when_active_but_retention_was_changed_then_lifts_it_again() -> None:
    """R9: no topic is ACTIVE on a broker that deletes by itself; the originals stay."""
    world = World()
    process = world.process()
    enable(process)
    world.topics.set({"retention.ms": "60000"})
    world.effects.log.clear()

    assert enable(process) is PolicyState.ACTIVE

    assert world.effects.log == [PUBLISH, ALTER, PUBLISH]
    assert originals(process) == {"retention.ms": None, "retention.bytes": None}


def test_enable_when_topic_may_not_be_tiered_then_changes_nothing() -> None:
    world = World()
    world.topics.set({"cleanup.policy": "compact"})

    with pytest.raises(InvalidConfigError, match=r"cleanup\.policy=compact"):
        enable(world.process())

    assert world.effects.log == []


def test_activate_when_somebody_changed_the_policy_meanwhile_then_gives_up() -> None:
    world = World()
    process = world.process()
    enable(process)
    enabling = replace(process.policy(), state=PolicyState.ENABLING)
    disabling = replace(enabling, state=PolicyState.DISABLING)
    process.when_shown = lambda _: process.overwrite(disabling)

    with pytest.raises(FencedError, match="another process has changed"):
        process.tiering.activate(enabling, timeout_ms=TIMEOUT_MS)

    assert process.policy().state is PolicyState.DISABLING


def test_activate_when_the_manager_was_faster_then_is_done() -> None:
    world = World()
    process = world.process()
    enable(process)
    active = process.policy()
    process.when_shown = lambda _: process.overwrite(active)

    enabling = replace(active, state=PolicyState.ENABLING)

    assert process.tiering.activate(enabling, timeout_ms=TIMEOUT_MS) == active
    assert process.policy() == active


def test_policy_when_read_by_another_process_then_is_the_one_written() -> None:
    world = World()
    world.topics.set({"retention.bytes": "4096"})
    enable(world.process(), local_retention_bytes=0)

    policy = world.process().policy()

    assert policy.topic_id == TOPIC_ID
    assert policy.originals == (
        OriginalConfig(name="retention.ms", value=None),
        OriginalConfig(name="retention.bytes", value="4096"),
    )
