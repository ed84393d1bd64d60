"""R9: the order in which a topic's tiering is disabled, and that a rerun finishes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.broker.topics.topic_admin import LogSpan
from rlm.policy.candidates import Lag
from rlm.policy.topic.topic_policy import PolicyFlags
from rlmm.events.policy import PolicyState, TopicPolicy
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError
from tests.unit.rlm.topics.tiering_world import (
    ALTER,
    PUBLISH,
    TIMEOUT_MS,
    TIP,
    TOPIC,
    CrashError,
    Process,
    World,
)

LIFTED = {"retention.ms": "-1", "retention.bytes": "-1"}
UNSTORED = LogSpan(local_start_offset=0, high_watermark=100, since_offset=0)


def tiered_world(**overrides: str) -> World:
    world = World()
    world.topics.set({name.replace("_", "."): value for name, value in overrides.items()})
    world.process().tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)
    world.effects.log.clear()
    return world


def disable(process: Process, *, force: bool = False, delete_remote: bool = False) -> TopicPolicy:
    return process.ending.disable(
        TOPIC, delete_remote=delete_remote, force=force, timeout_ms=TIMEOUT_MS
    )


def test_disable_when_all_is_stored_then_restores_retention_between_two_policies() -> None:
    world = tiered_world(retention_ms="1000")

    policy = disable(world.process())

    assert policy.state is PolicyState.DISABLED
    assert world.effects.log == [PUBLISH, ALTER, PUBLISH]
    assert world.topics.overrides == {"retention.ms": "1000"}


@pytest.mark.parametrize("crash_before", [0, 1, 2])
def test_disable_when_killed_before_an_effect_then_a_rerun_restores_exactly(
    crash_before: int,
) -> None:
    """R9: an absent original is an absent override again."""
    world = tiered_world(retention_bytes="4096")
    world.effects.crash_before = crash_before
    with pytest.raises(CrashError):
        disable(world.process())

    policy = disable(world.restart())

    assert policy.state is PolicyState.DISABLED
    assert world.topics.overrides == {"retention.bytes": "4096"}


@pytest.mark.parametrize("crash_before", [1, 2])
def test_enable_when_disabling_was_interrupted_then_originals_survive(crash_before: int) -> None:
    """R9: the -1 of rlm never becomes an original."""
    world = tiered_world(retention_ms="1000")
    world.effects.crash_before = crash_before
    with pytest.raises(CrashError):
        disable(world.process())

    process = world.restart()
    process.tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)

    assert {o.name: o.value for o in process.policy().originals} == {
        "retention.ms": "1000",
        "retention.bytes": None,
    }


def test_disable_when_rolled_segments_stay_unstored_then_refuses_and_stays_active() -> None:
    """R9: the error has the bytes at risk; the broker's retention stays as it was."""
    world = tiered_world()
    world.topics.span = UNSTORED
    world.lags.stated = {TIP: Lag(segments=2, bytes=8192)}
    process = world.process()

    with pytest.raises(RetriableError, match=r"8192 bytes"):
        disable(process)

    assert process.policy().state is PolicyState.ACTIVE
    assert world.topics.overrides == LIFTED
    assert sum(world.clock.slept_ms) >= TIMEOUT_MS


def test_disable_when_records_would_be_lost_then_says_first_that_the_topic_is_active_again() -> (
    None
):
    world = tiered_world()
    world.topics.span = UNSTORED
    world.lags.stated = {TIP: Lag(segments=2, bytes=8192)}

    with pytest.raises(RetriableError) as raised:
        disable(world.process())

    assert raised.value.message.startswith("cannot disable tiering, the topic is ACTIVE again")
    assert "--force" in str(raised.value)


def test_disable_when_a_manager_does_not_answer_then_it_is_named_and_force_is_not_suggested() -> (
    None
):
    """**Data loss:** --force would give up unknown records because of a wrong address."""
    world = tiered_world(retention_bytes="4096")
    world.topics.span = UNSTORED
    world.lags.stated = {}
    process, shown = world.process(), list[str]()
    process.when_shown = shown.append

    with pytest.raises(RetriableError) as raised:
        disable(process)

    assert process.policy().state is PolicyState.ACTIVE
    assert raised.value.message.startswith("cannot disable tiering, the topic is ACTIVE again")
    assert "the manager of broker 1 does not answer" in str(raised.value.context["waits_for"])
    assert "--force" not in str(raised.value)
    assert any("becomes ACTIVE again" in text for text in shown[:1])
    assert any("the manager of broker 1 does not answer" in text for text in shown)


def test_disable_when_copying_ends_in_time_then_waits_for_it() -> None:
    world = tiered_world()
    world.topics.span = UNSTORED
    world.lags.stated = {TIP: Lag(segments=1, bytes=10)}
    process = world.process()

    def catch_up(text: str) -> None:
        if text.startswith("waiting"):
            world.lags.stated = {TIP: Lag(segments=0, bytes=0)}

    process.when_shown = catch_up

    assert disable(process).state is PolicyState.DISABLED


def test_disable_when_forced_then_gives_up_what_is_at_risk() -> None:
    world = tiered_world()
    world.topics.span = UNSTORED
    world.lags.stated = {TIP: Lag(segments=2, bytes=8192)}

    policy = disable(world.process(), force=True)

    assert policy.state is PolicyState.DISABLED
    assert world.topics.overrides == {}


def test_disable_when_only_the_active_segment_is_expired_then_refuses_without_waiting() -> None:
    """R9: the broker would delete these records at once, and no manager would copy them."""
    world = tiered_world()
    world.topics.span = replace(UNSTORED, since_offset=60)
    process = world.process()

    with pytest.raises(RetriableError, match=r"0\.\.60"):
        disable(process)

    assert sum(world.clock.slept_ms) == 0


def test_disable_when_asked_for_lags_then_they_are_those_under_disabling() -> None:
    """R9: a report from before the trims stopped proves nothing."""
    world = tiered_world()

    disable(world.process())

    assert {policy.state for policy in world.lags.asked_of} == {PolicyState.DISABLING}


def test_disable_when_policy_changes_while_waiting_then_restores_nothing() -> None:
    world = tiered_world()
    world.topics.span = UNSTORED
    world.lags.stated = {TIP: Lag(segments=1, bytes=10)}
    process = world.process()

    def reactivate(text: str) -> None:
        if text.startswith("waiting"):
            process.overwrite(replace(process.policy(), state=PolicyState.ACTIVE))
            world.lags.stated = {TIP: Lag(segments=0, bytes=0)}

    process.when_shown = reactivate

    with pytest.raises(FencedError):
        disable(process)

    assert world.topics.overrides == LIFTED
    assert process.policy().state is PolicyState.ACTIVE


def test_disable_when_remote_data_is_to_go_then_the_policy_says_so() -> None:
    assert disable(tiered_world().process(), delete_remote=True).delete_remote


def test_disable_when_disabled_already_then_only_the_removal_may_be_added() -> None:
    world = tiered_world()
    process = world.process()
    disable(process)
    world.effects.log.clear()

    policy = disable(process, delete_remote=True)

    assert policy.delete_remote
    assert world.effects.log == [PUBLISH]


def test_disable_when_topic_is_not_tiered_then_says_so() -> None:
    with pytest.raises(InvalidConfigError, match="not tiered"):
        disable(World().process())


def test_preview_when_records_are_at_risk_then_names_them_and_changes_nothing() -> None:
    world = tiered_world()
    world.topics.span = replace(UNSTORED, since_offset=60)

    policy, risks = world.process().ending.preview(TOPIC, timeout_ms=TIMEOUT_MS)

    assert policy.state is PolicyState.ACTIVE
    assert [str(risk) for risk in risks] == [
        "partition 0 0..60: older than the retention to be restored, and not rolled"
    ]
    assert world.effects.log == []
