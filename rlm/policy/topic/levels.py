"""Resolves the settings of topics from policy levels. Pure.

    the topic's own setting
    → the patterns that match its name, the most specific first
    → the default
    → the managers' configuration file
    → the built-in value; for total retention, the topic's value before tiering

Each setting comes from the first level that gives it. A pattern also makes the topics that it
matches tiered; the default does not. The result is recorded in the topic's policy, so decisions
about partitions read no levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any

from rlmm.events.policy import (
    AS_LOCAL_RETENTION,
    AS_MANAGERS_SETTING,
    AS_TOTAL_RETENTION,
    CopyLagSince,
    OutagePolicy,
    PolicySetting,
    TopicPolicy,
)
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel, SettingValue
from rsm.segment.errors import InvalidConfigError

PATTERN_MAX_CHARACTERS = 249
"""Kafka's limit of a topic's name (org.apache.kafka.common.internals.Topic)."""

PATTERN_CHARACTERS = "[A-Za-z0-9._*?-]"

_PATTERN = re.compile(f"{PATTERN_CHARACTERS}+")
_BUILT_IN: Mapping[PolicySetting, SettingValue | None] = {
    PolicySetting.LOCAL_RETENTION_MS: AS_TOTAL_RETENTION,
    PolicySetting.LOCAL_RETENTION_BYTES: AS_TOTAL_RETENTION,
    PolicySetting.COPY_LAG_MS: 0,
    PolicySetting.COPY_LAG_BYTES: 0,
    PolicySetting.COPY_LAG_SINCE: CopyLagSince.NEWEST_RECORD,
    PolicySetting.OUTAGE_POLICY: OutagePolicy.HOLD,
    PolicySetting.LOCAL_DELETION_LAG_MS: AS_MANAGERS_SETTING,
    PolicySetting.OFFLOAD_MODE: None,
    PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES: AS_MANAGERS_SETTING,
    PolicySetting.OFFLOAD_SEGMENT_ROLLOVER_MS: AS_MANAGERS_SETTING,
    PolicySetting.LAYOUT: None,
}

FileValues = Mapping[PolicySetting, SettingValue]
"""Settings that the managers' configuration file gives topics."""

NO_FILE_VALUES: FileValues = MappingProxyType({})

_DECIDED_BY_MANAGERS = frozenset(
    {
        PolicySetting.LOCAL_DELETION_LAG_MS,
        PolicySetting.OFFLOAD_MODE,
        PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES,
        PolicySetting.OFFLOAD_SEGMENT_ROLLOVER_MS,
        PolicySetting.LAYOUT,
    }
)


def check_pattern(pattern: str) -> None:
    """Raise InvalidConfigError unless the text can match the name of a topic."""
    if not _PATTERN.fullmatch(pattern) or len(pattern) > PATTERN_MAX_CHARACTERS:
        raise InvalidConfigError(
            "the pattern is invalid: its length or a character is not allowed",
            pattern=pattern,
            rule=f"1 to {PATTERN_MAX_CHARACTERS} of the characters a-z, A-Z, 0-9, '.', '_', '-'; "
            "'*' matches any characters, '?' one",
        )


def levels_of(topic: str, levels: Iterable[PolicyLevel]) -> tuple[PolicyLevel, ...]:
    """Return the levels that apply to a topic, the most specific first and the default last."""
    matching = [each for each in levels if _applies(each.pattern, topic)]
    return tuple(sorted(matching, key=_rank))


class LevelIndex:
    """Represents many levels, indexed to find the levels of a topic quickly. Immutable.

    The index key is the text of a pattern before the first `*` or `?`.
    """

    def __init__(self, levels: Iterable[PolicyLevel]) -> None:
        self._by_prefix: dict[str, list[PolicyLevel]] = {}
        for level in levels:
            self._by_prefix.setdefault(_prefix(level.pattern), []).append(level)

    def levels_of(self, topic: str) -> tuple[PolicyLevel, ...]:
        """Return the levels that apply to a topic, in the order of the function `levels_of`."""
        lengths = range(min(len(topic), PATTERN_MAX_CHARACTERS) + 1)
        found = (self._by_prefix.get(topic[:length], ()) for length in lengths)
        return levels_of(topic, chain.from_iterable(found))


def tiering_level(topic: str, levels: Iterable[PolicyLevel]) -> PolicyLevel | None:
    """Return the most specific pattern that matches a topic; None if no pattern tiers it."""
    first = next(iter(levels_of(topic, levels)), None)
    return None if first is None or first.pattern == DEFAULT_LEVEL else first


def giving_level(
    setting: PolicySetting, topic: str, levels: Iterable[PolicyLevel]
) -> PolicyLevel | None:
    """Return the level from which a topic inherits a setting; None if no level gives it."""
    return next((each for each in levels_of(topic, levels) if setting in each.values), None)


def origin_text(
    setting: PolicySetting,
    policy: TopicPolicy,
    levels: Iterable[PolicyLevel],
    file: FileValues = NO_FILE_VALUES,
) -> str:
    """Return the origin of a topic's setting, for people.

    Returns `topic`, `pattern P` or `default`. If no level gives the setting, returns `managers` for
    what the managers or their configuration `file` decide, `broker` for the total retention from
    before the topic was tiered, else `built-in`.
    """
    if setting not in policy.inherited:
        is_theirs = (
            setting in _DECIDED_BY_MANAGERS and getattr(policy, setting.field) == _BUILT_IN[setting]
        )
        return "managers" if is_theirs else "topic"
    level = giving_level(setting, policy.topic, levels)
    if level is not None:
        return f"pattern {level.pattern}" if level.pattern != DEFAULT_LEVEL else "default"
    if setting in _DECIDED_BY_MANAGERS or setting in file:
        return "managers"
    return "built-in" if setting in _BUILT_IN else "broker"


def resolved(
    policy: TopicPolicy, levels: Sequence[PolicyLevel], file: FileValues = NO_FILE_VALUES
) -> TopicPolicy:
    """Return the policy with inherited settings from these levels, else `file`, else built-in.

    Does not check the result, which may break Kafka's rules.
    """
    values: dict[str, Any] = {}
    unset = set()
    given = _given(levels_of(policy.topic, levels)) if policy.inherited else {}
    for setting in policy.inherited:
        if setting in given:
            values[setting.field] = given[setting]
        elif setting in file:
            values[setting.field] = file[setting]
        else:
            unset.add(setting)
            values[setting.field] = _without_level(setting, policy)
    found = replace(policy, **values)
    # A lag of 0 copies at once. So if only one lag is set, the other becomes the local retention.
    if PolicySetting.COPY_LAG_MS in unset and found.copy_lag_bytes:
        found = replace(found, copy_lag_ms=AS_LOCAL_RETENTION)
    elif PolicySetting.COPY_LAG_BYTES in unset and found.copy_lag_ms:
        found = replace(found, copy_lag_bytes=AS_LOCAL_RETENTION)
    return found


def _given(applying: Sequence[PolicyLevel]) -> Mapping[PolicySetting, SettingValue]:
    """Return the settings that levels give; an earlier level has priority over a later one."""
    given: dict[PolicySetting, SettingValue] = {}
    for level in reversed(applying):
        given |= level.values
    return given


def _without_level(setting: PolicySetting, policy: TopicPolicy) -> SettingValue | None:
    """Return the value of a setting that neither a level nor the file gives.

    If the topic's retention before tiering is unknown, its total retention stays as it is.
    """
    if setting is PolicySetting.RETENTION_MS:
        before = policy.untiered_retention_ms
        return policy.retention_ms if before is None else before
    if setting is PolicySetting.RETENTION_BYTES:
        before = policy.untiered_retention_bytes
        return policy.retention_bytes if before is None else before
    return _BUILT_IN[setting]


def _prefix(pattern: str) -> str:
    return pattern.partition("*")[0].partition("?")[0]


def _applies(pattern: str, topic: str) -> bool:
    return pattern == DEFAULT_LEVEL or _expression(pattern).match(topic) is not None


# Each pattern is matched with many topics, so its expression is compiled once.
@lru_cache(maxsize=10_000)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _rank(level: PolicyLevel) -> tuple[bool, int, int, str]:
    """Order patterns by more fixed characters, fewer `*`, then their text; the default is last."""
    pattern = level.pattern
    any_count = pattern.count("*")
    fixed_count = len(pattern) - any_count - pattern.count("?")
    return (pattern == DEFAULT_LEVEL, -fixed_count, any_count, pattern)
