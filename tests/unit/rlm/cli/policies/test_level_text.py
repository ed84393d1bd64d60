"""The text that shows policy levels, and the effects of their changes on topics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.cli.policies.level_text import (
    LevelChange,
    change_lines,
    effect_json,
    effect_lines,
    level_json,
    level_lines,
)
from rlm.topics.level_effects import TopicEffect
from rlmm.events.policy import OutagePolicy, TopicPolicy
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.offload_settings import OffloadMode
from tests.unit.rlm.policy.views import POLICY

DAY_MS = 86_400_000
LEVEL = PolicyLevel(
    pattern="orders-*",
    retention_ms=30 * DAY_MS,
    local_retention_bytes=-2,
    outage_policy=OutagePolicy.SHED_OLDEST,
    offload_mode=OffloadMode.STREAM,
)
BEFORE = replace(
    POLICY, retention_ms=30 * DAY_MS, untiered_retention_ms=7 * DAY_MS, untiered_retention_bytes=-1
)


def effect(
    before: TopicPolicy | None, after: TopicPolicy | None, obstacle: str = ""
) -> TopicEffect:
    return TopicEffect(
        topic="orders-1",
        topic_id=POLICY.topic_id,
        pattern="orders-*",
        before=before,
        after=after,
        obstacle=obstacle,
    )


def test_level_when_shown_then_has_its_settings() -> None:
    assert list(level_lines(LEVEL)) == [
        "pattern orders-*",
        "  retention_ms = 2592000000 (30 days)",
        "  local_retention_bytes = -2",
        "  outage_policy = shed",
        "  offload_mode = stream",
    ]
    assert level_json(LEVEL) == {
        "pattern": "orders-*",
        "settings": {
            "retention_ms": 30 * DAY_MS,
            "local_retention_bytes": -2,
            "outage_policy": "shed",
            "offload_mode": "stream",
        },
    }
    assert list(level_lines(PolicyLevel(pattern=""))) == ["default", "  no settings"]


def test_change_when_shown_then_has_the_difference() -> None:
    after = replace(LEVEL, retention_ms=60_000, outage_policy=None, copy_lag_ms=0)

    assert list(change_lines(LevelChange(pattern="orders-*", before=LEVEL, after=after))) == [
        "pattern orders-*: changed",
        "  ~ retention_ms = 2592000000 (30 days) -> 60000 (60 s)",
        "  + copy_lag_ms = 0",
        "  - outage_policy = shed",
    ]
    new = LevelChange(pattern="", before=None, after=PolicyLevel(pattern="", copy_lag_ms=1))
    assert list(change_lines(new)) == ["default: new", "  + copy_lag_ms = 1 (1 ms)"]
    removed = replace(new, before=new.after, after=None)
    assert list(change_lines(removed)) == ["default: removed", "  - copy_lag_ms = 1 (1 ms)"]


@pytest.mark.parametrize(
    ("after_ms", "ending"),
    [
        (DAY_MS, "-> 86400000 (24 h) (older data is deleted)"),
        (60 * DAY_MS, "-> 5184000000 (60 days)"),
        (-1, "-> -1"),
    ],
)
def test_effect_when_retention_becomes_shorter_then_the_danger_is_shown(
    after_ms: int, ending: str
) -> None:
    """**Data loss:** the reader decides by these lines whether to continue."""
    first, second = effect_lines(effect(BEFORE, replace(BEFORE, retention_ms=after_ms)))

    assert first == "topic orders-1: settings change"
    assert second == f"  retention_ms: 2592000000 (30 days) {ending}"


def test_effect_when_a_topic_is_tiered_with_less_retention_than_it_had_then_shown() -> None:
    tiered = replace(BEFORE, retention_ms=DAY_MS, retention_bytes=1 << 30)

    assert list(effect_lines(effect(None, tiered))) == [
        "topic orders-1: is tiered by pattern orders-*",
        "  retention_ms: 604800000 (7 days) -> 86400000 (24 h) (older data is deleted)",
        "  retention_bytes: -1 -> 1073741824 (1.0 GiB) (older data is deleted)",
    ]
    assert list(effect_lines(effect(None, BEFORE))) == [
        "topic orders-1: is tiered by pattern orders-*"
    ]


def test_effect_when_the_policy_was_lost_then_the_topic_had_no_limit_until_now() -> None:
    lost = replace(effect(None, replace(BEFORE, retention_ms=7 * DAY_MS)), is_unlimited=True)

    assert list(effect_lines(lost))[1:] == [
        "  retention_ms: -1 -> 604800000 (7 days) (older data is deleted)"
    ]


def test_effect_when_the_topic_stays_then_says_why() -> None:
    assert list(effect_lines(effect(None, None, "compacted"))) == [
        "topic orders-1: does not follow: compacted"
    ]
    assert list(effect_lines(effect(BEFORE, BEFORE))) == ["topic orders-1: stays as it is"]


@pytest.mark.parametrize(
    ("shown", "action"),
    [
        (effect(None, BEFORE), "tier"),
        (effect(BEFORE, replace(BEFORE, retention_ms=1)), "change"),
        (effect(BEFORE, BEFORE), "keep"),
        (effect(None, None, "compacted"), "skip"),
    ],
)
def test_effect_when_printed_as_json_then_names_its_action(shown: TopicEffect, action: str) -> None:
    found = effect_json(shown)

    assert found["action"] == action
    if action == "change":
        assert found["changed"] == {"retention_ms": {"before": 30 * DAY_MS, "after": 1}}


def test_effect_when_the_topic_becomes_tiered_then_no_setting_has_a_value_before() -> None:
    changed = effect_json(effect(None, BEFORE))["changed"]

    assert isinstance(changed, dict)
    assert {each["before"] for each in changed.values()} == {None}
    assert changed["retention_ms"]["after"] == 30 * DAY_MS
