"""Reads the YAML file of `rlm apply`: the policies of the default, patterns and topics.

    default:
      local_retention_ms: 1h
    patterns:
      orders-*:
        retention_ms: 30d
        offload_mode: stream
    topics:
      payments:
        local_retention_ms: 6h

Values have the forms of the options of `rlm policy set`, but none of them means "inherit". A topic
inherits each setting that the file omits, except the total retention: the topic keeps its own. An
unknown key, a repeated key or an invalid value raises an error with line and column.
docs/policies.schema.json is generated from `SETTING_FORMS`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer
import yaml

from rlm.cli.invocation.amount_options import durations, sizes
from rlm.cli.topics.policy_options import layout_name
from rlm.policy.topic.levels import PATTERN_MAX_CHARACTERS, check_pattern
from rlm.policy.topic.topic_policy import RETENTIONS, OffloadModeFlag, PolicyFlags
from rlmm.events.policy import CopyLagSince, OutagePolicy, PolicySetting
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel, SettingValue
from rsm.config.choices import CLASS_FORM, Layout
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import (
    OFFLOAD_SEGMENT_GREATEST_BYTES,
    OFFLOAD_SEGMENT_LEAST_BYTES,
    OffloadMode,
)

FILE_MAX_BYTES = 1 << 20
DEFAULT_KEY, PATTERNS_KEY, TOPICS_KEY = "default", "patterns", "topics"
TOPIC_CHARACTERS = "[A-Za-z0-9._-]"

_TOPIC = re.compile(f"{TOPIC_CHARACTERS}{{1,{PATTERN_MAX_CHARACTERS}}}")
_SUGGESTION_CUTOFF = 0.6
_YAML = "Correct the file; docs/policies.schema.json is its schema"
# YAML 1.1, section 5.1, does not allow these characters.
_NOT_PRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The parser in C is ten times as fast.
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = (
    yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
)
_NULL_TAG = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingForm:
    """Represents the form of a setting in a file: its parser and its allowed values.

    `choices` are the allowed texts. If there are none, the value is an integer or a number with a
    unit; if `is_text`, any text that `parse` accepts.
    """

    parse: Callable[[str], SettingValue]
    meaning: str
    choices: tuple[str, ...] = ()
    is_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """Represents the settings that a file gives one topic, and its line."""

    topic: str
    flags: PolicyFlags
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Represents the content of a file: levels, and topics with their own settings.

    `names_levels`: the file gives the key `default` or `patterns` a value, which may be `{}`.
    """

    levels: tuple[PolicyLevel, ...]
    topics: tuple[TopicEntry, ...] = ()
    names_levels: bool = True


def _amount(parse: Callable[[object], int], meaning: str) -> SettingForm:
    return SettingForm(parse=parse, meaning=meaning)


def _choice(values: Mapping[str, SettingValue], meaning: str) -> SettingForm:
    def parse(text: str) -> SettingValue:
        if text not in values:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(values)}")
        return values[text]

    return SettingForm(parse=parse, meaning=meaning, choices=tuple(values))


_OF_PARTITION = "of each partition, such as 50GiB; in bytes if it has no unit"
SETTING_FORMS: Mapping[PolicySetting, SettingForm] = MappingProxyType(
    {
        PolicySetting.RETENTION_MS: _amount(
            durations(special=[-1]),
            "Total retention, such as 30d; in ms if it has no unit. -1 is unlimited.",
        ),
        PolicySetting.RETENTION_BYTES: _amount(
            sizes(special=[-1]), f"Total retention {_OF_PARTITION}. -1 is unlimited."
        ),
        PolicySetting.LOCAL_RETENTION_MS: _amount(
            durations(special=[-1, -2]),
            "Retention on the broker's disk, such as 1h; in ms if it has no unit. -2 is the total "
            "retention, -1 unlimited.",
        ),
        PolicySetting.LOCAL_RETENTION_BYTES: _amount(
            sizes(special=[-1, -2]),
            f"Retention on the broker's disk {_OF_PARTITION}. -2 is the total retention, -1 "
            "unlimited.",
        ),
        PolicySetting.COPY_LAG_MS: _amount(
            durations(special=[-1]),
            "Age at which a rolled segment is copied; in ms if it has no unit. 0 copies at "
            "once; -1 uses the limit of local retention.",
        ),
        PolicySetting.COPY_LAG_BYTES: _amount(
            sizes(special=[-1]),
            "Total size of newer segments at which a segment is copied; in bytes if it has no "
            "unit. 0 copies at once; -1 uses the limit of local retention.",
        ),
        PolicySetting.COPY_LAG_SINCE: _choice(
            {each.name.lower(): each for each in CopyLagSince},
            "Start of copy_lag_ms. newest_record (default): the timestamp of the segment's newest "
            "record. roll: the time at which the broker rolled the segment (PIP-17).",
        ),
        PolicySetting.OUTAGE_POLICY: _choice(
            {each.name.lower().partition("_")[0]: each for each in OutagePolicy},
            "**Data loss:** shed gives up the oldest unstored data if the store is unreachable and "
            "the broker's disk fills. hold (default) keeps unstored data.",
        ),
        PolicySetting.LOCAL_DELETION_LAG_MS: _amount(
            durations(),
            "How long a stored segment stays on the broker's disk (PIP-17); in ms if it has "
            "no unit.",
        ),
        PolicySetting.OFFLOAD_MODE: _choice(
            {each.name.lower(): each for each in OffloadMode},
            "What managers offload. segment: rolled log segments. stream: the log as it grows "
            "(PIP-76).",
        ),
        PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES: _amount(
            sizes(
                least_bytes=OFFLOAD_SEGMENT_LEAST_BYTES, most_bytes=OFFLOAD_SEGMENT_GREATEST_BYTES
            ),
            "With offload_mode stream: size at which an offload segment ends; in bytes if it has "
            "no unit.",
        ),
        PolicySetting.OFFLOAD_SEGMENT_ROLLOVER_MS: _amount(
            durations(),
            "With offload_mode stream: time after which an offload segment ends; in ms if it has "
            "no unit.",
        ),
        PolicySetting.LAYOUT: SettingForm(
            parse=layout_name,
            is_text=True,
            meaning="Layout of new segments: "
            f"{', '.join(each.value for each in Layout)}, or a class of the managers' "
            f"rsm.config.layout as {CLASS_FORM}. Streamed segments use the layout if it divides "
            "the log into chunks, such as chunked, and block_v2 otherwise.",
        ),
    }
)


def read_policies(path: Path) -> Policies:
    """Read all policies of a file. Raises InvalidConfigError, with the position if it is known."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise InvalidConfigError(
            "cannot read the file",
            file=path,
            reason=error.strerror,
            advice="Check its path and permissions",
        ) from error
    if len(data) > FILE_MAX_BYTES:
        raise InvalidConfigError(
            "cannot read the file: it is too large",
            file=path,
            expected=f"at most {FILE_MAX_BYTES} bytes",
            advice="Divide it into several files",
        )
    return _PoliciesFile(path).policies(data)


class _PoliciesFile:
    """Represents one file; errors name the file, and the line and column if they are known."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def policies(self, data: bytes) -> Policies:
        root = self._composed(data)
        levels: list[PolicyLevel] = []
        topics: list[TopicEntry] = []
        names_levels = False
        for key, value in self._entries(root, (DEFAULT_KEY, PATTERNS_KEY, TOPICS_KEY)):
            names_levels = names_levels or (key.value != TOPICS_KEY and not _is_null(value))
            if key.value == DEFAULT_KEY:
                levels.append(self._level(DEFAULT_LEVEL, value))
            elif key.value == PATTERNS_KEY:
                levels += (self._pattern(*each) for each in self._entries(value))
            else:
                topics += (self._topic(*each) for each in self._entries(value))
        return Policies(levels=tuple(levels), topics=tuple(topics), names_levels=names_levels)

    def _pattern(self, key: yaml.ScalarNode, settings: yaml.Node) -> PolicyLevel:
        try:
            check_pattern(key.value)
        except InvalidConfigError as error:
            raise self._error(key, error.message, **error.context) from error
        return self._level(key.value, settings)

    def _topic(self, key: yaml.ScalarNode, settings: yaml.Node) -> TopicEntry:
        if not _TOPIC.fullmatch(key.value):
            raise self._error(key, "the key is not a topic name: patterns belong below `patterns`")
        return TopicEntry(
            topic=key.value,
            flags=_only(self._level(key.value, settings)),
            line=key.start_mark.line + 1,
        )

    def _composed(self, data: bytes) -> yaml.Node | None:
        text = self._text(data)
        try:
            return yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            raise self._invalid(
                error.problem,
                line=None if mark is None else mark.line + 1,
                column=None if mark is None else mark.column + 1,
            ) from error
        except (yaml.YAMLError, RecursionError) as error:
            raise self._invalid(str(error).partition("\n")[0] or "nested too deeply") from error

    def _text(self, data: bytes) -> str:
        """Decode and check the file's characters: the parser reports no line for an invalid one."""
        encoding = "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "replace")
            reason = f"not {error.encoding}: {error.reason}"
            raise self._invalid(reason, *_end_of(before)) from error
        wrong = _NOT_PRINTABLE.search(text)
        if wrong is not None:
            reason = f"the character {wrong.group()!r} is not allowed"
            raise self._invalid(reason, *_end_of(text[: wrong.start()]))
        return text

    def _invalid(
        self, reason: object, line: int | None = None, column: int | None = None
    ) -> InvalidConfigError:
        return InvalidConfigError(
            "the file is not valid YAML",
            file=self._path,
            line=line,
            column=column,
            reason=reason,
            advice=_YAML,
        )

    def _level(self, pattern: str, node: yaml.Node) -> PolicyLevel:
        values: dict[str, Any] = {}
        fields = {each.field: each for each in PolicySetting}
        for key, value in self._entries(node, tuple(fields)):
            values[key.value] = self._value(fields[key.value], key, value)
        if values.get(PolicySetting.COPY_LAG_MS.field) is not None:
            values.setdefault(PolicySetting.COPY_LAG_SINCE.field, CopyLagSince.NEWEST_RECORD)
        return PolicyLevel(pattern=pattern, **values)

    def _value(self, setting: PolicySetting, key: yaml.ScalarNode, node: yaml.Node) -> SettingValue:
        if not isinstance(node, yaml.ScalarNode) or _is_null(node):
            raise self._error(node, "the value is missing, a list or a mapping", key=key.value)
        try:
            return SETTING_FORMS[setting].parse(node.value)
        except typer.BadParameter as error:
            hint = _hint(node.value, SETTING_FORMS[setting].choices)
            raise self._error(
                node, "the value is invalid", key=key.value, reason=error.message, **hint
            ) from error

    def _entries(
        self, node: yaml.Node | None, known: tuple[str, ...] | None = None
    ) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """Yield the entries of a mapping, which may be empty.

        Raises InvalidConfigError if a key is repeated or not `known`; None allows all keys.
        """
        if node is None or _is_null(node):
            return
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, "the value is not a mapping of keys to values")
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key is not text")
            if known is not None and key.value not in known:
                raise self._error(
                    key, "the key is unknown", key=key.value, **_hint(key.value, known)
                )
            if key.value in seen:
                raise self._error(key, "the key occurs twice", key=key.value)
            seen.add(key.value)
            yield key, value

    def _error(self, node: yaml.Node, message: str, **context: object) -> InvalidConfigError:
        mark = node.start_mark
        return InvalidConfigError(
            message, file=self._path, line=mark.line + 1, column=mark.column + 1, **context
        )


def _end_of(text: str) -> tuple[int, int]:
    """Return the line and the column, from 1, of the character after a text."""
    lines = re.split("\r\n|\r|\n", text)
    return len(lines), len(lines[-1]) + 1


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL_TAG


def _only(settings: PolicyLevel) -> PolicyFlags:
    """Return flags that set these settings for a topic, and no others.

    The topic inherits all other settings, but keeps its own total retention. Otherwise a level with
    a lower retention would delete data although the file does not set the topic's retention.
    """
    given: dict[str, Any] = {each.field: value for each, value in settings.values.items()}
    if settings.offload_mode is not None:
        given[PolicySetting.OFFLOAD_MODE.field] = OffloadModeFlag[settings.offload_mode.name]
    inherited = frozenset(PolicySetting) - settings.values.keys() - RETENTIONS.keys()
    return PolicyFlags(**given, inherit=inherited)


def _hint(given: str, known: Collection[str]) -> Mapping[str, str]:
    """Return the most similar known text as an error's field; empty if none is close."""
    close = get_close_matches(given, known, n=1, cutoff=_SUGGESTION_CUTOFF)
    return {"did_you_mean": close[0]} if close else {}
