"""A change of policy levels: what is shown, and what is then written."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from rlm.broker.bootstrap import Bootstrap
from rlm.cli.invocation.session import CommandSession
from rlm.cli.policies.apply import unnamed_topics
from rlm.cli.policies.level_changes import ShownChange, apply_change, find_change, show_change
from rlm.cli.policies.policies_file import TopicEntry
from rlm.config.load import client_command_config
from rlm.policy.topic.topic_policy import RETENTIONS, OffloadModeFlag, PolicyFlags
from rlmm.events.policy import PolicySetting, PolicyState, topic_policies
from rlmm.events.policy_level import PolicyLevel, policy_levels
from rsm.segment.errors import FencedError, InvalidConfigError
from rsm.segment.offload_settings import OffloadMode
from tests.unit.rlm.topics.tiering_world import TIMEOUT_MS, TOPIC, Process, World

OWN = PolicyFlags(
    local_retention_ms=60_000,
    inherit=frozenset(PolicySetting) - RETENTIONS.keys() - {PolicySetting.LOCAL_RETENTION_MS},
)
LEVEL = PolicyLevel(pattern="orders*", retention_ms=60_000)


@pytest.fixture
def process() -> Process:
    return World().process()


def session(process: Process) -> CommandSession:
    return CommandSession(
        config=client_command_config("broker:9092", None, lambda _: None),
        clock=process.world.clock,
        deadline_ms=60_000,
        bootstrap=cast("Bootstrap", None),
        topics=process.world.topics,
        metadata=process.metadata,
        cluster_id="memory",
        positions={},
    )


def shown(change: ShownChange, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    show_change(change, dry_run=True, as_json=False)
    output, notes = capsys.readouterr()
    return output.splitlines(), notes


def test_change_when_a_pattern_is_new_then_its_topics_are_shown_and_it_is_written(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    change = find_change(session(process), (LEVEL,))
    before = policy_levels(process.metadata)

    apply_change(session(process), change)

    assert (before, policy_levels(process.metadata)) == ((), (LEVEL,))
    assert topic_policies(process.metadata) == ()  # managers tier topics; commands do not
    assert shown(change, capsys) == (
        [
            "pattern orders*: new",
            "  + retention_ms = 60000 (60 s)",
            f"topic {TOPIC}: is tiered by pattern orders*",
            "  retention_ms: 604800000 (7 days) -> 60000 (60 s) (older data is deleted)",
            f"topic {TOPIC}: retention_ms 7 days -> 60 s: older data on the broker expires",
        ],
        "",
    )


def test_change_when_it_shortens_a_tiered_topic_then_a_dry_run_shows_what_expires(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    process.tiering.enable(
        TOPIC, PolicyFlags(inherit=frozenset({PolicySetting.RETENTION_MS})), timeout_ms=TIMEOUT_MS
    )

    change = find_change(session(process), (LEVEL,))

    assert shown(change, capsys)[0][-1] == (
        f"topic {TOPIC}: retention_ms 7 days -> 60 s: stored segments that expire: at least 0, 0 B"
    )


def test_change_when_a_topic_is_compacted_then_is_shown_as_not_following(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    process.world.topics.set({"cleanup.policy": "compact"})

    lines, _ = shown(find_change(session(process), (LEVEL,)), capsys)

    assert lines[-1].startswith(f"topic {TOPIC}: does not follow: the topic cannot be tiered")
    assert "cleanup.policy=compact" in lines[-1]


def test_change_when_a_pattern_matches_nothing_then_is_a_note(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    change = find_change(session(process), (replace(LEVEL, pattern="payments-*"),))

    assert shown(change, capsys)[1] == "note: pattern payments-* matches no topic yet\n"


def test_change_when_levels_are_missing_among_the_wanted_ones_then_are_removed(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    process.set_level(LEVEL)

    change = find_change(session(process), ())
    apply_change(session(process), change)

    assert policy_levels(process.metadata) == ()
    assert shown(change, capsys)[0][0] == "pattern orders*: removed"


def test_change_when_nothing_differs_then_says_so(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    process.set_level(LEVEL)

    assert shown(find_change(session(process), (LEVEL,)), capsys) == (["nothing to change"], "")


def entry(flags: PolicyFlags = OWN, topic: str = TOPIC) -> TopicEntry:
    return TopicEntry(topic=topic, flags=flags, line=3)


def test_topic_when_the_file_names_it_then_is_tiered_with_its_settings(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    change = find_change(session(process), (), (entry(),))
    assert topic_policies(process.metadata) == ()

    apply_change(session(process), change)

    policy = process.policy()
    assert (policy.state, policy.local_retention_ms) == (PolicyState.ACTIVE, 60_000)
    assert PolicySetting.LOCAL_RETENTION_MS not in policy.inherited
    assert shown(change, capsys)[0] == [f"topic {TOPIC}: is tiered by its own entry"]


def test_topic_when_the_file_leaves_a_setting_out_then_it_is_inherited_again(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    process.tiering.enable(
        TOPIC, PolicyFlags(copy_lag_ms=5, retention_ms=90_000), timeout_ms=TIMEOUT_MS
    )

    change = find_change(session(process), (), (entry(),))
    apply_change(session(process), change)

    policy = process.policy()
    assert (policy.retention_ms, policy.copy_lag_ms) == (90_000, 0)
    assert PolicySetting.COPY_LAG_MS in policy.inherited
    assert PolicySetting.RETENTION_MS not in policy.inherited
    lines, _ = shown(change, capsys)
    assert lines[0] == f"topic {TOPIC}: settings change"
    assert {"  local_retention_ms: is set for the topic", "  copy_lag_ms: is inherited"} <= {*lines}


def test_topic_when_it_has_what_the_file_gives_then_nothing_changes(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    apply_change(session(process), find_change(session(process), (), (entry(),)))
    before = process.policy()

    change = find_change(session(process), (), (entry(),))
    apply_change(session(process), change)

    assert process.policy() == before
    assert shown(change, capsys)[0] == ["nothing to change"]


def test_topic_when_its_tiering_was_disabled_then_stays_so_and_says_it(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    apply_change(session(process), find_change(session(process), (), (entry(),)))
    process.ending.disable(TOPIC, delete_remote=False, force=False, timeout_ms=TIMEOUT_MS)

    change = find_change(session(process), (), (entry(),))
    apply_change(session(process), change)

    assert process.policy().state is PolicyState.DISABLED
    assert (
        f"topic {TOPIC}: does not follow: tiering of the topic was disabled"
        in (shown(change, capsys)[0][-1])
    )


def test_topic_when_the_new_levels_give_a_setting_then_its_own_wins(process: Process) -> None:
    level = PolicyLevel(pattern="orders*", local_retention_ms=1, copy_lag_ms=1)

    apply_change(session(process), find_change(session(process), (level,), (entry(),)))

    policy = process.policy()
    assert (policy.local_retention_ms, policy.copy_lag_ms) == (60_000, 1)


def test_topic_when_it_does_not_exist_then_refused_with_its_line_and_nothing_changes(
    process: Process,
) -> None:
    with pytest.raises(InvalidConfigError, match="the topic does not exist") as refused:
        find_change(session(process), (LEVEL,), (entry(topic="payments"),))

    assert (refused.value.context["topic"], refused.value.context["line"]) == ("payments", 3)
    assert policy_levels(process.metadata) == ()


def test_topic_when_its_rollover_is_above_its_retention_then_refused_and_nothing_changes(
    process: Process,
) -> None:
    """The default level gives a local retention that is shorter than the topic's rollover time."""
    default = PolicyLevel(pattern="", local_retention_ms=60_000)
    flags = PolicyFlags(offload_mode=OffloadModeFlag.STREAM, offload_segment_rollover_ms=60_001)

    with pytest.raises(InvalidConfigError, match="cannot set the topic's own settings") as refused:
        find_change(session(process), (default,), (entry(flags),))

    assert (refused.value.context["topic"], refused.value.context["line"]) == (TOPIC, 3)
    reason = str(refused.value.context["reason"])
    assert "local.retention.ms=60000" in reason
    assert "max.offload.segment.rollover.time.ms=60001" in reason
    assert policy_levels(process.metadata) == ()
    assert topic_policies(process.metadata) == ()


def test_levels_when_another_command_changes_one_after_the_question_then_nothing_is_written(
    process: Process,
) -> None:
    change = find_change(session(process), (LEVEL, PolicyLevel(pattern="")))
    other = replace(LEVEL, retention_ms=1)
    process.set_level(other)

    with pytest.raises(FencedError, match="it has changed nothing"):
        apply_change(session(process), change)

    assert policy_levels(process.metadata) == (other,)


def test_topic_when_its_tiering_is_disabled_after_the_question_then_nothing_is_written(
    process: Process,
) -> None:
    apply_change(session(process), find_change(session(process), (), (entry(),)))
    other = entry(replace(OWN, local_retention_ms=70_000))
    change = find_change(session(process), (), (other,))
    process.ending.disable(TOPIC, delete_remote=False, force=False, timeout_ms=TIMEOUT_MS)

    with pytest.raises(FencedError, match="it has changed nothing"):
        apply_change(session(process), change)

    assert process.policy().state is PolicyState.DISABLED


def test_levels_when_they_contradict_each_other_then_refused_although_no_topic_matches(
    process: Process,
) -> None:
    default = PolicyLevel(pattern="", local_retention_ms=60_000)
    pattern = PolicyLevel(
        pattern="a*", offload_mode=OffloadMode.STREAM, offload_segment_rollover_ms=600_000
    )

    with pytest.raises(InvalidConfigError, match="contradict each other") as refused:
        find_change(session(process), (default, pattern))

    assert "local.retention.ms=60000" in str(refused.value)
    assert "max.offload.segment.rollover.time.ms=600000" in str(refused.value)
    assert policy_levels(process.metadata) == ()


def test_topic_when_it_is_compacted_and_in_the_file_then_refused(process: Process) -> None:
    process.world.topics.set({"cleanup.policy": "compact"})

    with pytest.raises(InvalidConfigError, match="cannot set the topic's own settings") as refused:
        find_change(session(process), (LEVEL,), (entry(),))

    assert "cleanup.policy=compact" in str(refused.value.context["reason"])


def test_topics_when_pruned_and_not_in_the_file_then_stay_tiered_and_are_named(
    process: Process,
) -> None:
    process.tiering.enable(TOPIC, PolicyFlags(copy_lag_ms=0), timeout_ms=TIMEOUT_MS)

    assert list(unnamed_topics(topic_policies(process.metadata), {"payments"})) == [
        f"topic {TOPIC} is not in the file and keeps its own settings: copy_lag_ms"
    ]
    assert list(unnamed_topics(topic_policies(process.metadata), {TOPIC})) == []
    assert process.policy().state is PolicyState.ACTIVE
