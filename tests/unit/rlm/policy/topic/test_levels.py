"""Which level a topic's setting comes from, and the policy that results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rlm.policy.topic.levels import (
    LevelIndex,
    check_pattern,
    giving_level,
    levels_of,
    origin_text,
    resolved,
    tiering_level,
)
from rlm.policy.topic.topic_policy import RETENTIONS
from rlmm.events.policy import (
    CopyLagSince,
    OutagePolicy,
    PolicySetting,
    PolicyState,
    TopicPolicy,
)
from rlmm.events.policy_level import PolicyLevel, SettingValue
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import OffloadMode
from tests.unit.rlm.policy.views import POLICY

WEEK_MS = 604_800_000
INHERITS_ALL = replace(
    POLICY,
    inherited=frozenset(PolicySetting),
    untiered_retention_ms=WEEK_MS,
    untiered_retention_bytes=-1,
)


def level(pattern: str, **values: int) -> PolicyLevel:
    return replace(PolicyLevel(pattern=pattern), **values)  # type: ignore[arg-type]  # numbers only


def found(*levels: PolicyLevel, policy: TopicPolicy = INHERITS_ALL) -> TopicPolicy:
    return resolved(policy, levels)


@pytest.mark.parametrize(
    ("patterns", "ordered"),
    [
        (("", "*", "orders"), ["orders", "*", ""]),
        (("o*", "ord*", "or*"), ["ord*", "or*", "o*"]),
        (("orders*", "orders"), ["orders", "orders*"]),
        (("orde*s*", "order*"), ["order*", "orde*s*"]),
        (("order?", "order*"), ["order?", "order*"]),
        (("orde??", "order*"), ["order*", "orde??"]),
        (("o*s", "*rs"), ["*rs", "o*s"]),
        (("orders-*", "Orders", "order", "payments*"), []),
    ],
)
def test_levels_when_several_apply_then_the_most_specific_is_first_and_the_default_last(
    patterns: tuple[str, ...], ordered: list[str]
) -> None:
    assert [each.pattern for each in levels_of("orders", map(level, patterns))] == ordered


@pytest.mark.parametrize("topic", ["orders", "order", "xorders", "o", "", "orders-eu.1"])
def test_index_when_levels_apply_then_finds_those_of_the_plain_search(topic: str) -> None:
    patterns = ("", "*", "?*", "o*", "ord?rs", "orders", "*ers", "orders-*", "orders-eu.?", "p*")
    levels = tuple(map(level, patterns))

    assert LevelIndex(levels).levels_of(topic) == levels_of(topic, levels)


def test_settings_when_many_are_inherited_then_the_levels_are_searched_once() -> None:
    """A cluster may have a thousand patterns, and a thousand topics that inherit from them."""
    searched: list[int] = []

    class Levels(tuple[PolicyLevel, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[PolicyLevel]:
            searched.append(len(self))
            return super().__iter__()

    levels = Levels((level("", retention_ms=1, copy_lag_ms=5), level("o*", retention_ms=2)))

    assert resolved(INHERITS_ALL, levels).retention_ms == 2
    assert searched == [2]


def test_tiering_level_when_only_the_default_applies_then_none() -> None:
    """The default gives settings, and tiers nothing."""
    assert tiering_level("orders", (level("", retention_ms=1), level("payments"))) is None
    assert tiering_level("orders", (level("payments"),)) is None
    assert tiering_level("orders", (level(""), level("*"))) == level("*")


def test_setting_when_levels_give_it_then_the_most_specific_wins_and_others_give_the_rest() -> None:
    levels = (
        level("", retention_ms=1, local_deletion_lag_ms=2, retention_bytes=3),
        level("*", retention_ms=10, local_deletion_lag_ms=20),
        level("ord*", retention_ms=100),
    )

    policy = found(*levels)

    values = (policy.retention_ms, policy.local_deletion_lag_ms, policy.retention_bytes)
    assert values == (100, 20, 3)
    assert giving_level(PolicySetting.RETENTION_BYTES, "orders", levels) == levels[0]
    assert giving_level(PolicySetting.OUTAGE_POLICY, "orders", levels) is None


def test_setting_when_set_for_the_topic_then_no_level_changes_it() -> None:
    own = replace(INHERITS_ALL, retention_ms=7, inherited=frozenset({PolicySetting.COPY_LAG_SINCE}))

    assert found(level("orders", retention_ms=1), policy=own) == own


def test_policy_when_an_earlier_version_wrote_it_then_no_level_changes_it() -> None:
    """**Data loss:** its record does not show which settings nobody set for the topic."""
    every = level("*", retention_ms=1, local_retention_ms=1, copy_lag_ms=1)

    assert found(every, policy=POLICY) == POLICY


def test_policy_when_no_level_gives_a_setting_then_the_untiered_retention_and_built_in_values() -> (
    None
):
    changed = replace(
        INHERITS_ALL,
        retention_ms=1,
        retention_bytes=1,
        local_retention_ms=1,
        local_retention_bytes=1,
        copy_lag_ms=1,
        copy_lag_bytes=1,
        copy_lag_since=CopyLagSince.ROLL,
        outage_policy=OutagePolicy.SHED_OLDEST,
        local_deletion_lag_ms=1,
        offload_mode=OffloadMode.STREAM,
        offload_segment_max_bytes=1,
        offload_segment_rollover_ms=1,
        layout="block_v2",
    )

    assert found(policy=changed) == TopicPolicy(
        topic=POLICY.topic,
        topic_id=POLICY.topic_id,
        state=PolicyState.ACTIVE,
        retention_ms=WEEK_MS,
        retention_bytes=-1,
        inherited=frozenset(PolicySetting),
        untiered_retention_ms=WEEK_MS,
        untiered_retention_bytes=-1,
    )


def test_settings_of_every_kind_when_a_level_gives_them_then_the_topic_has_them() -> None:
    every = PolicyLevel(
        pattern="*",
        retention_ms=1,
        retention_bytes=2,
        local_retention_ms=3,
        local_retention_bytes=4,
        copy_lag_ms=5,
        copy_lag_bytes=6,
        copy_lag_since=CopyLagSince.ROLL,
        outage_policy=OutagePolicy.SHED_OLDEST,
        local_deletion_lag_ms=7,
        offload_mode=OffloadMode.STREAM,
        offload_segment_max_bytes=8,
        offload_segment_rollover_ms=9,
        layout="block_v1",
    )

    policy = found(every)

    assert {each: getattr(policy, each.field) for each in PolicySetting} == every.values


def test_origin_when_a_setting_is_the_topics_own_then_managers_if_it_refers_to_them() -> None:
    own = replace(POLICY, local_deletion_lag_ms=-1, offload_segment_max_bytes=2_048)

    assert origin_text(PolicySetting.LOCAL_DELETION_LAG_MS, own, ()) == "managers"
    assert origin_text(PolicySetting.OFFLOAD_MODE, own, ()) == "managers"
    assert origin_text(PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES, own, ()) == "topic"
    assert origin_text(PolicySetting.COPY_LAG_MS, own, ()) == "topic"


def test_origin_when_a_setting_is_inherited_then_the_level_that_gives_it_or_what_is_left() -> None:
    levels = (level("", retention_bytes=1), level("ord*", retention_ms=1))

    assert origin_text(PolicySetting.RETENTION_MS, INHERITS_ALL, levels) == "pattern ord*"
    assert origin_text(PolicySetting.RETENTION_BYTES, INHERITS_ALL, levels) == "default"
    assert origin_text(PolicySetting.RETENTION_BYTES, INHERITS_ALL, ()) == "broker"
    assert origin_text(PolicySetting.OUTAGE_POLICY, INHERITS_ALL, levels) == "built-in"
    assert origin_text(PolicySetting.LAYOUT, INHERITS_ALL, levels) == "managers"


def test_setting_when_the_managers_file_gives_it_then_only_below_all_other_levels() -> None:
    file: dict[PolicySetting, SettingValue] = {
        PolicySetting.RETENTION_MS: 1,
        PolicySetting.LOCAL_RETENTION_MS: 2,
        PolicySetting.OUTAGE_POLICY: OutagePolicy.SHED_OLDEST,
    }
    levels = (level("", local_retention_ms=20),)
    own = replace(INHERITS_ALL, inherited=INHERITS_ALL.inherited - {PolicySetting.RETENTION_MS})

    policy = resolved(INHERITS_ALL, levels, file)

    values = (policy.retention_ms, policy.local_retention_ms, policy.outage_policy)
    assert values == (1, 20, OutagePolicy.SHED_OLDEST)
    assert resolved(own, levels, file).retention_ms == own.retention_ms
    origins = [origin_text(each, INHERITS_ALL, levels, file) for each in file]
    assert origins == ["managers", "default", "managers"]
    assert origin_text(PolicySetting.RETENTION_BYTES, INHERITS_ALL, levels, file) == "broker"
    assert origin_text(PolicySetting.RETENTION_MS, own, levels, file) == "topic"


def test_copy_lag_when_the_managers_file_gives_only_one_then_the_other_does_not_copy_at_once() -> (
    None
):
    policy = resolved(INHERITS_ALL, (), {PolicySetting.COPY_LAG_BYTES: 5})

    assert (policy.copy_lag_ms, policy.copy_lag_bytes) == (-1, 5)


def test_retention_when_no_level_gives_it_and_the_untiered_one_is_unknown_then_stays() -> None:
    """An earlier version tiered the topic; later, its retention was left to the levels."""
    policy = replace(POLICY, retention_ms=5, inherited=frozenset(RETENTIONS))

    assert found(policy=policy) == policy


@pytest.mark.parametrize(
    ("values", "lags"),
    [
        ({"copy_lag_ms": 5}, (5, -1)),
        ({"copy_lag_bytes": 5}, (-1, 5)),
        ({"copy_lag_ms": 5, "copy_lag_bytes": 0}, (5, 0)),
        ({"copy_lag_ms": 0}, (0, 0)),
    ],
)
def test_copy_lag_when_a_level_gives_only_one_then_the_other_does_not_copy_at_once(
    values: dict[str, int], lags: tuple[int, int]
) -> None:
    policy = found(level("orders", **values))

    assert (policy.copy_lag_ms, policy.copy_lag_bytes) == lags


@pytest.mark.parametrize("pattern", ["orders", "orders-*", "*", "a.b_c-?", "x" * 249])
def test_pattern_when_it_can_match_a_topic_then_is_accepted(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["", "orders-[ab]", "a b", "a,b", "ü", "x" * 250, "a\n"])
def test_pattern_when_no_topic_can_have_such_a_name_then_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidConfigError, match="the pattern is invalid"):
        check_pattern(pattern)
