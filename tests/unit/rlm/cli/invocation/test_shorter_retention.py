"""What a shorter retention expires, and the prompt that precedes it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest

from rlm.broker.bootstrap import Bootstrap
from rlm.cli.invocation.session import CommandSession
from rlm.cli.invocation.shorter_retention import confirm_expiry, expiry_lines
from rlm.cli.topics.topic import preview_policy, set_policy
from rlm.config.load import client_command_config
from rlm.policy.topic.topic_policy import PolicyFlags
from rlmm.events.policy import PolicyState, TopicPolicy, topic_policy
from rsm.segment.errors import InvalidConfigError, StoppedError
from tests.metadata_builder import FINISHED, STARTED, claim, segment_metadata, step
from tests.unit.rlm.topics.tiering_world import (
    TIMEOUT_MS,
    TIP,
    TOPIC,
    TOPIC_ID,
    WEEK_MS,
    Process,
    World,
)

HOUR_MS = 3_600_000
POLICY = TopicPolicy(
    topic=TOPIC,
    topic_id=TOPIC_ID,
    state=PolicyState.ACTIVE,
    retention_ms=WEEK_MS,
    retention_bytes=-1,
)
FIRST = replace(POLICY, untiered_retention_ms=WEEK_MS, untiered_retention_bytes=-1)
DISABLED = replace(FIRST, state=PolicyState.DISABLED, retention_ms=HOUR_MS)
SEGMENT_COUNT = 3


class Terminal(io.StringIO):
    """A stream on which a person types or reads."""

    def isatty(self) -> bool:
        return True


@contextmanager
def terminal(answer: str = "") -> Iterator[Terminal]:
    """Use a terminal at which a person gives this answer; yield what the person reads."""
    before = sys.stdin, sys.stderr
    asked = Terminal()
    sys.stdin, sys.stderr = Terminal(answer), asked
    try:
        yield asked
    finally:
        sys.stdin, sys.stderr = before


@pytest.fixture
def process() -> Process:
    """A process of a cluster that has stored three segments, each two hours old."""
    process = World().process()
    assert process.metadata.publish(claim(partition=TIP)).accepted
    for number in range(SEGMENT_COUNT):
        start_offset = number * 100
        metadata = replace(
            segment_metadata(number + 1, start_offset, start_offset + 100, partition=TIP),
            max_timestamp_ms=process.world.clock.wall_ms() - 2 * HOUR_MS,
            segment_size_bytes=1 << 20,
        )
        for state in (STARTED, FINISHED):
            assert process.metadata.publish(step(metadata, state)).accepted
    return process


def session(process: Process) -> CommandSession:
    return CommandSession(
        config=client_command_config("broker:9092", None, lambda _: None),
        clock=process.world.clock,
        deadline_ms=process.world.clock.monotonic_ms() + TIMEOUT_MS,
        bootstrap=cast("Bootstrap", None),
        topics=process.world.topics,
        metadata=process.metadata,
        cluster_id="memory",
        positions={},
    )


def lines(process: Process, before: TopicPolicy | None, after: TopicPolicy | None) -> list[str]:
    return list(expiry_lines(session(process), ((before, after),)))


def test_lines_when_the_time_becomes_shorter_then_name_the_limits_and_what_expires(
    process: Process,
) -> None:
    assert lines(process, POLICY, replace(POLICY, retention_ms=HOUR_MS)) == [
        (
            f"topic {TOPIC}: retention_ms 7 days -> 60 min:"
            " stored segments that expire: at least 3, 3.0 MiB"
        )
    ]


def test_lines_when_the_first_policy_is_below_the_brokers_limit_then_name_both(
    process: Process,
) -> None:
    first = replace(FIRST, retention_ms=30)

    assert lines(process, None, first) == [
        f"topic {TOPIC}: retention_ms 7 days -> 30 ms: older data on the broker expires"
    ]


@pytest.mark.parametrize("was_ms", [HOUR_MS, 2 * WEEK_MS], ids=["broker", "store"])
def test_lines_when_a_topic_is_tiered_again_then_compare_with_what_keeps_its_data_longest(
    process: Process, was_ms: int
) -> None:
    disabled = replace(DISABLED, retention_ms=was_ms)

    (line,) = lines(process, disabled, replace(FIRST, retention_ms=HOUR_MS))

    longest = "7 days" if was_ms < WEEK_MS else "14 days"
    assert line.startswith(
        f"topic {TOPIC}: retention_ms {longest} -> 60 min: stored segments that expire: at least 3,"
    )


def test_lines_when_a_first_policy_has_no_record_of_the_brokers_limit_then_it_had_none(
    process: Process,
) -> None:
    (line,) = lines(process, None, POLICY)

    assert "retention_ms unlimited -> 7 days" in line


def test_lines_when_the_policy_was_lost_then_brokers_had_no_limit(process: Process) -> None:
    """The brokers' retention has been -1 since, so nothing has expired by the earlier limit."""
    lost = expiry_lines(session(process), ((None, FIRST),), unlimited={TOPIC_ID})

    assert list(lost) == [
        f"topic {TOPIC}: retention_ms unlimited -> 7 days: older data on the broker expires"
    ]


def test_lines_when_a_size_is_set_then_name_the_oldest_segments_above_it(process: Process) -> None:
    (line,) = lines(process, POLICY, replace(POLICY, retention_bytes=2 << 20))

    assert line.startswith(
        f"topic {TOPIC}: retention_bytes unlimited -> 2.0 MiB: "
        "stored segments that expire: at least 1,"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, FIRST),
        (None, replace(FIRST, retention_ms=2 * WEEK_MS)),
        (DISABLED, DISABLED),
        (POLICY, POLICY),
        (POLICY, replace(POLICY, retention_ms=-1)),
        (POLICY, replace(POLICY, retention_ms=WEEK_MS + 1)),
        (POLICY, replace(POLICY, local_retention_ms=0)),
        (POLICY, None),
    ],
    ids=["first", "first_longer", "stays_disabled", "same", "unlimited", "longer", "local", "none"],
)
def test_lines_when_total_retention_is_not_shorter_then_there_are_none(
    process: Process, before: TopicPolicy | None, after: TopicPolicy | None
) -> None:
    assert lines(process, before, after) == []


def test_preview_when_the_flags_shorten_retention_then_the_policy_and_what_expires_unchanged(
    process: Process,
) -> None:
    process.tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)
    before, effects = process.policy(), list(process.world.effects.log)

    policy, expiring = preview_policy(
        session(process), TOPIC, PolicyFlags(retention_ms=HOUR_MS), before
    )

    assert (policy.retention_ms, policy.state) == (HOUR_MS, PolicyState.ACTIVE)
    assert len(expiring) == 1
    assert process.policy() == before
    assert process.world.effects.log == effects


def test_policy_when_shortened_and_the_user_does_not_agree_then_stays_as_it_is(
    process: Process,
) -> None:
    process.tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)
    before = process.policy()
    shorter = PolicyFlags(retention_ms=HOUR_MS)

    with terminal("n\n"):
        with pytest.raises(StoppedError):
            set_policy(session(process), TOPIC, shorter, before, yes=False)
        stayed = process.policy()
        set_policy(session(process), TOPIC, shorter, before, yes=True)

    assert stayed == before
    assert process.policy().retention_ms == HOUR_MS


def test_policy_when_the_first_is_below_the_brokers_limit_then_asks_before_the_topic_is_tiered(
    process: Process,
) -> None:
    with terminal("n\n") as asked, pytest.raises(StoppedError):
        set_policy(session(process), TOPIC, PolicyFlags(retention_ms=30), None, yes=False)

    assert "retention_ms 7 days -> 30 ms" in asked.getvalue()
    assert topic_policy(process.metadata, TOPIC_ID) is None
    assert process.world.topics.overrides == {}


def test_policy_when_not_shortened_then_set_without_a_question(process: Process) -> None:
    week = PolicyFlags(retention_ms=WEEK_MS)

    with terminal() as asked:
        set_policy(session(process), TOPIC, week, None, yes=False)

    assert "Shorten" not in asked.getvalue()
    assert process.policy().retention_ms == WEEK_MS


def test_policy_when_shortened_without_a_terminal_then_refused_with_the_limits_unless_yes(
    process: Process,
) -> None:
    hour = PolicyFlags(retention_ms=HOUR_MS)

    with pytest.raises(InvalidConfigError, match=r"7 days -> 60 min.* then pass --yes"):
        set_policy(session(process), TOPIC, hour, None, yes=False)
    refused = topic_policy(process.metadata, TOPIC_ID)
    set_policy(session(process), TOPIC, hour, None, yes=True)

    assert refused is None
    assert process.policy().retention_ms == HOUR_MS


def test_question_when_the_user_does_not_agree_then_stopped_after_what_expires(
    process: Process,
) -> None:
    with terminal("n\n") as asked, pytest.raises(StoppedError, match="nothing was changed"):
        confirm_expiry(session(process), ["topic orders: 3 expire"], yes=False)

    assert asked.getvalue().startswith("topic orders: 3 expire\nShorten the retention")


@pytest.mark.parametrize("shown", [[], ["topic orders: 3 expire"]])
def test_question_when_nothing_expires_or_yes_is_given_then_not_asked(
    process: Process, shown: list[str]
) -> None:
    given = session(process)

    with terminal() as asked:
        on = confirm_expiry(given, shown, yes=bool(shown))

    assert asked.getvalue() == ""
    assert on.remaining_ms() == given.remaining_ms()
