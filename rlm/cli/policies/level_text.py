"""Formats policy levels, and the effects of a change on topics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rlm.cli.invocation.amounts import age_text, size_text
from rlm.policy.topic.topic_policy import RETENTIONS, is_lower_limit
from rlm.topics.inheritance import changed_settings
from rlm.topics.level_effects import TopicEffect
from rlmm.events.policy import UNLIMITED, OutagePolicy, PolicySetting, TopicPolicy
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel, SettingValue
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import id_to_text

_INHERITED_WITHOUT_VALUE = frozenset({PolicySetting.OFFLOAD_MODE, PolicySetting.LAYOUT})
SETTINGS = JsonField(
    JsonKind.MAP,
    "The settings, by the names of [TopicPolicy](#topicpolicy): numbers and texts.",
)
_PATTERN = JsonField(JsonKind.TEXT, "The pattern of topic names; empty for the default.")
POLICY_LEVEL = JsonShape(
    name="PolicyLevel",
    meaning="The settings of topics whose names match a pattern, or of the default.",
    fields={"pattern": _PATTERN, "settings": SETTINGS},
)
_TOPIC = JsonShape(
    name="TopicEffect",
    meaning="The effect of the policy levels on a topic.",
    fields={
        "topic": JsonField(JsonKind.TEXT, "The topic's name."),
        "topic_id": JsonField(JsonKind.ID, "The topic's id."),
        "pattern": JsonField(
            JsonKind.TEXT, "The pattern that tiers the topic; empty if none does."
        ),
        "action": JsonField(
            JsonKind.TEXT,
            "`tier`: the topic is tiered. `change`: settings change. `keep`: nothing changes. "
            "`skip`: the topic does not follow the levels; `obstacle` says why.",
        ),
        "obstacle": JsonField(
            JsonKind.TEXT, "Why the topic does not follow the levels; empty if it does."
        ),
        "changed": JsonField(
            JsonKind.MAP,
            "The settings that change, by the names of [TopicPolicy](#topicpolicy). Each is an "
            "object with `before` (null if the topic is not tiered) and `after`.",
        ),
        "inherited": JsonField(
            JsonKind.TEXT,
            "Names of the settings that the topic inherits afterwards; empty if the topic is not "
            "tiered.",
            is_list=True,
        ),
    },
)
_TOPICS = JsonField(_TOPIC, "The topics that match the pattern or inherit settings.", is_list=True)
LEVEL_DOCUMENT = JsonShape(
    name="PolicyLevelDescription",
    meaning="A policy level, and the topics to which it applies.",
    fields={"pattern": _PATTERN, "settings": SETTINGS, "topics": _TOPICS},
)
CHANGES_DOCUMENT = JsonShape(
    name="PolicyChanges",
    meaning="A change of policy levels, and what managers then do with topics.",
    fields={
        "dry_run": JsonField(JsonKind.FLAG, "Whether the command ran with `--dry-run`."),
        "levels": JsonField(
            JsonShape(
                name="PolicyLevelChange",
                meaning="A level that changes.",
                fields={
                    "pattern": _PATTERN,
                    "before": JsonField(
                        JsonKind.MAP, "The settings before; null for a new level."
                    ).or_null(),
                    "after": JsonField(
                        JsonKind.MAP, "The settings after; null for a removed level."
                    ).or_null(),
                },
            ),
            "The levels that change.",
            is_list=True,
        ),
        "topics": JsonField(
            _TOPIC, "The topics that change or do not follow the levels.", is_list=True
        ),
        "notes": JsonField(JsonKind.TEXT, "Notes for people.", is_list=True),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """Represents a level before and after a change; None if it does not exist then."""

    pattern: str
    before: PolicyLevel | None
    after: PolicyLevel | None


def level_name(pattern: str) -> str:
    """Return the name of a level in messages."""
    return "default" if pattern == DEFAULT_LEVEL else f"pattern {pattern}"


def level_json(level: PolicyLevel) -> Mapping[str, object]:
    """Return a level as `--json` prints it."""
    return {"pattern": level.pattern, "settings": settings_json(level.values)}


def level_lines(level: PolicyLevel) -> Iterator[str]:
    """Yield a level for people."""
    yield level_name(level.pattern)
    for setting, value in level.values.items():
        yield f"  {setting.field} = {value_text(setting, value)}"
    if not level.values:
        yield "  no settings"


def effect_json(effect: TopicEffect) -> Mapping[str, object]:
    """Return the effect of the levels on a topic, as `--json` prints it."""
    changed = {}
    if effect.is_change and effect.after is not None:
        changed = {
            setting.field: {
                "before": None if effect.before is None else _plain(setting, before),
                "after": _plain(setting, after),
            }
            for setting, (before, after) in changed_settings(effect.before, effect.after).items()
        }
    return {
        "topic": effect.topic,
        "topic_id": id_to_text(effect.topic_id),
        "pattern": effect.pattern,
        "action": _action(effect),
        "obstacle": effect.obstacle,
        "changed": changed,
        "inherited": [
            each.field
            for each in PolicySetting
            if effect.after is not None and each in effect.after.inherited
        ],
    }


def changes_json(
    changes: Sequence[LevelChange],
    effects: Iterable[TopicEffect],
    notes: Sequence[str],
    *,
    dry_run: bool,
) -> Mapping[str, object]:
    """Return a change as a PolicyChanges document."""
    return {
        "dry_run": dry_run,
        "levels": [
            {
                "pattern": each.pattern,
                "before": None if each.before is None else settings_json(each.before.values),
                "after": None if each.after is None else settings_json(each.after.values),
            }
            for each in changes
        ],
        "topics": [effect_json(each) for each in effects],
        "notes": list(notes),
    }


def change_lines(change: LevelChange) -> Iterator[str]:
    """Yield the difference between a level before and after."""
    name = level_name(change.pattern)
    if change.after is None:
        yield f"{name}: removed"
    else:
        yield f"{name}: {'new' if change.before is None else 'changed'}"
    before = {} if change.before is None else change.before.values
    after = {} if change.after is None else change.after.values
    for setting in PolicySetting:
        old, new = before.get(setting), after.get(setting)
        if old == new:
            continue
        if old is None:
            yield f"  + {setting.field} = {value_text(setting, new)}"
        elif new is None:
            yield f"  - {setting.field} = {value_text(setting, old)}"
        else:
            yield f"  ~ {setting.field} = {value_text(setting, old)} -> {value_text(setting, new)}"


def effect_lines(effect: TopicEffect) -> Iterator[str]:
    """Yield, for people, the effect of the levels on a topic."""
    if effect.obstacle:
        yield f"topic {effect.topic}: does not follow: {effect.obstacle}"
    elif effect.after is None or not effect.is_change:
        yield f"topic {effect.topic}: stays as it is"
    elif effect.before is None:
        by = "its own entry" if effect.is_named else level_name(effect.pattern)
        yield f"topic {effect.topic}: is tiered by {by}"
        for setting in RETENTIONS:
            untiered = getattr(effect.after, f"untiered_{setting.field}")
            before = UNLIMITED if effect.is_unlimited else untiered
            after = getattr(effect.after, setting.field)
            if is_lower_limit(before, after):
                yield _changed_line(setting, before, after)
    else:
        yield f"topic {effect.topic}: settings change"
        for setting, (before, after) in changed_settings(effect.before, effect.after).items():
            yield _changed_line(setting, before, after)
        yield from _inheritance_lines(effect.before, effect.after)


def _inheritance_lines(before: TopicPolicy, after: TopicPolicy) -> Iterator[str]:
    """Yield the settings that the topic begins or ceases to inherit."""
    for setting in PolicySetting:
        if setting in before.inherited and setting not in after.inherited:
            yield f"  {setting.field}: is set for the topic"
        elif setting in after.inherited and setting not in before.inherited:
            yield f"  {setting.field}: is inherited"


def value_text(setting: PolicySetting, value: object) -> str:
    """Format a value of a setting for people."""
    plain = _plain(setting, value)
    if not isinstance(plain, int) or plain <= 0:
        return str(plain)
    text = age_text(plain) if setting.field.endswith("ms") else size_text(plain)
    return f"{plain} ({text})"


def _changed_line(setting: PolicySetting, before: object, after: object) -> str:
    is_shorter = (
        setting in RETENTIONS
        and isinstance(before, int)
        and isinstance(after, int)
        and is_lower_limit(before, after)
    )
    danger = " (older data is deleted)" if is_shorter else ""
    return (
        f"  {setting.field}: {value_text(setting, before)} -> {value_text(setting, after)}{danger}"
    )


def _action(effect: TopicEffect) -> str:
    if effect.obstacle:
        return "skip"
    if not effect.is_change:
        return "keep"
    return "tier" if effect.before is None else "change"


def settings_json(settings: Mapping[PolicySetting, SettingValue]) -> Mapping[str, object]:
    """Return settings as `--json` prints them."""
    return {setting.field: _plain(setting, value) for setting, value in settings.items()}


def _plain(setting: PolicySetting, value: object) -> object:
    """Return a value as `--json` prints it."""
    if value is None:
        return "inherit" if setting in _INHERITED_WITHOUT_VALUE else None
    if isinstance(value, OutagePolicy):
        return value.name.lower().partition("_")[0]
    return value.name.lower() if isinstance(value, Enum) else value
