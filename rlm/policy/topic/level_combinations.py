"""Checks the combined settings of policy levels, even if no topic has them yet. Pure.

rlm.policy.topic.topic_policy checks each level alone. Two valid levels can contradict each other:
for example, one gives a rollover time, and another a shorter local retention.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from rlm.policy.topic.levels import PATTERN_MAX_CHARACTERS, LevelIndex, resolved
from rlm.policy.topic.policy_values import FileDefaults, check_values
from rlmm.events.policy import UNLIMITED, PolicySetting, PolicyState, TopicPolicy
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel
from rsm.segment.errors import InvalidConfigError

# No pattern contains this character, so only `*` and `?` match it.
_ANY_CHARACTER = "!"


def check_combinations(
    before: Iterable[PolicyLevel], after: Iterable[PolicyLevel], managers: FileDefaults
) -> None:
    """Raise InvalidConfigError with the values if levels contradict each other or the file.

    `before` are all present levels, and `after` all wanted levels. Checks each level that is new or
    changes the settings of its topics. Assumes a topic with unlimited retention and no settings of
    its own. Each less specific level that covers the pattern also applies to this topic.
    """
    present, wanted = LevelIndex(before), LevelIndex(after)
    existing = {each.pattern for each in before}
    for pattern in sorted(each.pattern for each in after):
        found = _followed(pattern, wanted, managers)
        if pattern in existing and found == _followed(pattern, present, managers):
            continue
        try:
            check_values(found, managers.offload)
        except InvalidConfigError as error:
            values = {name: value for name, value in error.context.items() if name != "topic"}
            raise InvalidConfigError(
                "the policy levels are invalid: they contradict each other or the managers' file",
                pattern=pattern or "(default)",
                reason=error.message,
                **values,
            ) from error


def _followed(pattern: str, levels: LevelIndex, managers: FileDefaults) -> TopicPolicy:
    """Return the policy of a new topic to which this pattern applies, or only the default level."""
    topic = TopicPolicy(
        topic=_example(pattern),
        topic_id=UUID(int=0),
        state=PolicyState.ENABLING,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
        inherited=frozenset(PolicySetting),
    )
    applying = levels.levels_of(topic.topic)
    if pattern == DEFAULT_LEVEL:
        applying = tuple(each for each in applying if each.pattern == DEFAULT_LEVEL)
    return resolved(topic, applying, managers.values)


def _example(pattern: str) -> str:
    """Return a name matched only by this pattern and by the patterns that cover it.

    A `*` becomes longer than any pattern, so that other patterns can match it only with `*`.
    """
    any_name = _ANY_CHARACTER * (PATTERN_MAX_CHARACTERS + 1)
    return pattern.replace("?", _ANY_CHARACTER).replace("*", any_name)
