"""Formats all policy levels: those of patterns, the default, and the managers' files. Pure.

Managers register the settings that their files give topics, so the list needs no request to a
manager. It names each broker whose manager's settings are not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rlm.cli.policies.level_text import (
    POLICY_LEVEL,
    SETTINGS,
    level_json,
    level_lines,
    settings_json,
    value_text,
)
from rlm.policy.peers.differing_files import usual_values
from rlm.worker.file_defaults import read_registered
from rlmm.events.policy import PolicySetting
from rlmm.events.policy_level import PolicyLevel, SettingValue
from rlmm.events.registration import ProcessRegistered
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError

_NOT_SET = "(not set)"

LEVELS_DOCUMENT = JsonShape(
    name="PolicyLevels",
    meaning="The policy levels of the cluster.",
    fields={
        "levels": JsonField(POLICY_LEVEL, "The levels, the default first.", is_list=True),
        "managers": JsonField(
            JsonShape(
                name="ManagerFile",
                meaning="The settings that the configuration file of a broker's manager gives "
                "topics. They apply if no level gives the setting.",
                fields={
                    "broker_id": JsonField(JsonKind.COUNT, "The broker's id."),
                    "settings": SETTINGS,
                    "unknown_reason": JsonField(
                        JsonKind.TEXT, "Why the settings are not known; empty if they are."
                    ),
                },
            ),
            "The managers' files, by broker id.",
            is_list=True,
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerFile:
    """Represents the settings that the configuration file of one broker's manager gives topics.

    `unknown_reason` is why `settings` are not known; empty if they are.
    """

    broker_id: int
    settings: Mapping[PolicySetting, SettingValue] = field(default_factory=dict)
    unknown_reason: str = ""


def manager_files(
    broker_ids: Collection[int], managers: Iterable[ProcessRegistered]
) -> tuple[ManagerFile, ...]:
    """Return what each broker's live manager registered, or the reason if that is not known."""
    live = {each.broker_id: each for each in managers}
    return tuple(_file(each, live.get(each)) for each in sorted({*broker_ids, *live}))


def _file(broker_id: int, manager: ProcessRegistered | None) -> ManagerFile:
    reason = "no live manager is registered for it"
    if manager is not None and manager.file_defaults:
        try:
            settings = read_registered(manager.file_defaults).settings
            return ManagerFile(broker_id=broker_id, settings=settings)
        except InvalidConfigError as error:
            reason = str(error)
    elif manager is not None:
        reason = f"its manager, version {manager.version}, registers no settings"
    return ManagerFile(broker_id=broker_id, unknown_reason=reason)


def levels_json(
    levels: Iterable[PolicyLevel], files: Iterable[ManagerFile]
) -> Mapping[str, object]:
    """Return the document of --json."""
    return {
        "levels": [level_json(each) for each in levels],
        "managers": [
            {
                "broker_id": each.broker_id,
                "settings": settings_json(each.settings),
                "unknown_reason": each.unknown_reason,
            }
            for each in files
        ],
    }


def levels_lines(levels: Sequence[PolicyLevel], files: Sequence[ManagerFile]) -> Iterator[str]:
    """Yield the lines for people: most frequent values, and the brokers whose value differs."""
    for level in levels:
        yield from level_lines(level)
    if not levels:
        yield "no pattern has a policy, and there is no default"
    yield "managers (configuration files)"
    texts = {each.broker_id: _texts(each) for each in files if not each.unknown_reason}
    for name, most in usual_values(texts.values()).items():
        own = {broker_id: found[name] for broker_id, found in texts.items()}
        if {*own.values()} == {_NOT_SET}:
            continue
        yield f"  {name} = {most}"
        for broker_id, text in own.items():
            if text != most:
                yield f"    broker {broker_id}: {text}"
    for each in files:
        if each.unknown_reason:
            yield f"  broker {each.broker_id}: not known: {each.unknown_reason}"


def _texts(file: ManagerFile) -> Mapping[str, str]:
    return {
        each.field: value_text(each, file.settings[each]) if each in file.settings else _NOT_SET
        for each in PolicySetting
    }
