"""`rlm uninstall` ends the tiering of the topics that it showed, and names topics tiered since."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from rlm.cli.invocation.session import CommandSession
from rlm.cli.topics.uninstall import end_all
from rlm.policy.topic.topic_policy import PolicyFlags
from rlmm.events.policy import PolicyState, TopicPolicy
from rlmm.events.policy_level import PolicyLevel
from tests.log_dir_builder import ManualClock
from tests.unit.rlm.topics.tiering_world import TIMEOUT_MS, TOPIC, Process

LIFTED = {"retention.ms": "-1", "retention.bytes": "-1"}


class ActingClock(ManualClock):
    """A clock that calls `act` in each sleep."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def sleep_ms(self, duration_ms: int) -> None:
        super().sleep_ms(duration_ms)
        self._act()


def tier(process: Process) -> None:
    process.tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)


def test_end_all_when_a_topic_is_tiered_then_it_is_shown_and_has_its_retention_back(
    process: Process, session: CommandSession
) -> None:
    tier(process)
    shown: list[str] = []

    def ask(policies: Iterable[TopicPolicy]) -> CommandSession:
        shown.extend(policy.topic for policy in policies)
        return session

    failed = end_all(session, process.ending, ask=ask, force=False, dry_run=False)

    assert (failed, shown) == ([], [TOPIC])
    assert process.policy().state is PolicyState.DISABLED
    assert process.world.topics.overrides == {}


def test_end_all_when_a_topic_is_tiered_during_the_question_then_named_and_not_changed(
    process: Process, session: CommandSession, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(_: Iterable[TopicPolicy]) -> CommandSession:
        tier(process)
        return session

    failed = end_all(session, process.ending, ask=ask, force=True, dry_run=False)

    assert failed == [TOPIC]
    assert f"{TOPIC}: the topic was tiered while this command ran" in capsys.readouterr().err
    assert process.policy().state is PolicyState.ACTIVE
    assert process.world.topics.overrides == LIFTED


def test_end_all_when_a_manager_tiers_a_topic_after_its_pattern_is_removed_then_named(
    process: Process, session: CommandSession
) -> None:
    """The manager has not read yet that the pattern's policy is gone."""
    process.set_level(PolicyLevel(pattern="orders*", retention_ms=60_000))
    waiting = replace(session, clock=ActingClock(lambda: tier(process)))

    failed = end_all(waiting, process.ending, ask=lambda _: waiting, force=False, dry_run=False)

    assert failed == [TOPIC]
    assert process.policies.levels() == ()
