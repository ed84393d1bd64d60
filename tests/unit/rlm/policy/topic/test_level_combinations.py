"""Levels that are valid alone, but contradict each other."""

from __future__ import annotations

import pytest

from rlm.policy.topic.level_combinations import check_combinations
from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import check_level
from rlmm.events.policy import PolicySetting
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import OffloadMode

MINUTE_MS = 60_000
MANAGERS = FileDefaults()
DEFAULT = PolicyLevel(pattern="", local_retention_ms=MINUTE_MS)
STREAM = PolicyLevel(
    pattern="a*", offload_mode=OffloadMode.STREAM, offload_segment_rollover_ms=10 * MINUTE_MS
)
LONG = "max.offload.segment.rollover.time.ms=600000"
SHORT = "local.retention.ms=60000"


def local(pattern: str, minutes: int) -> PolicyLevel:
    return PolicyLevel(pattern=pattern, local_retention_ms=minutes * MINUTE_MS)


@pytest.mark.parametrize(
    "levels",
    [
        (DEFAULT, STREAM),
        (STREAM, local("*", 1)),
        (STREAM, local("?*", 1)),
        (STREAM, local("ab*", 1)),
        (STREAM, local("abc", 1)),
        (STREAM, local("a?", 1)),
        (STREAM, DEFAULT, local("ab*", 20)),
    ],
)
def test_levels_when_they_contradict_each_other_then_refused_with_both_values(
    levels: tuple[PolicyLevel, ...],
) -> None:
    for each in levels:
        check_level(each, MANAGERS)  # alone, each is valid

    with pytest.raises(InvalidConfigError, match="policy levels are invalid") as refused:
        check_combinations((), levels, MANAGERS)

    assert LONG in str(refused.value)
    assert SHORT in str(refused.value)


def test_levels_when_they_contradict_each_other_then_the_pattern_is_named() -> None:
    with pytest.raises(InvalidConfigError, match=r"pattern=a\*"):
        check_combinations((), (DEFAULT, STREAM), MANAGERS)
    with pytest.raises(InvalidConfigError, match="pattern=ab"):
        check_combinations((), (local("ab", 1), STREAM), MANAGERS)


@pytest.mark.parametrize(
    "levels",
    [
        (DEFAULT, STREAM, local("a*", 20)),
        (STREAM, local("b*", 1)),
        (STREAM, local("?", 1)),
        (STREAM, local("*", 20), DEFAULT),
        (STREAM, local("*z", 1)),
    ],
)
def test_levels_when_a_more_specific_one_decides_or_topics_differ_then_accepted(
    levels: tuple[PolicyLevel, ...],
) -> None:
    merged = {each.pattern: each for each in levels}
    if merged["a*"] is not STREAM:
        merged["a*"] = PolicyLevel(
            pattern="a*",
            offload_mode=OffloadMode.STREAM,
            offload_segment_rollover_ms=10 * MINUTE_MS,
            local_retention_ms=20 * MINUTE_MS,
        )

    check_combinations((), tuple(merged.values()), MANAGERS)


def test_levels_when_they_contradict_the_managers_file_then_refused() -> None:
    managers = FileDefaults(values={PolicySetting.LOCAL_RETENTION_MS: MINUTE_MS})

    with pytest.raises(InvalidConfigError, match=SHORT):
        check_combinations((), (STREAM,), managers)


def test_levels_when_the_contradiction_was_there_before_then_another_change_is_accepted() -> None:
    """An operator must be able to correct contradicting levels one by one."""
    before = (DEFAULT, STREAM)

    check_combinations(before, (*before, local("other", 5)), MANAGERS)
    check_combinations(before, (STREAM,), MANAGERS)


def test_level_when_its_removal_lets_others_contradict_then_refused() -> None:
    before = (DEFAULT, STREAM, local("*", 20))

    with pytest.raises(InvalidConfigError, match=SHORT):
        check_combinations(before, (DEFAULT, STREAM), MANAGERS)
