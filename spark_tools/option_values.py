"""Describes the data source's options, and parses their values from Spark's text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import TypeVar

from rsm.config.amounts import format_duration, format_size, parse_duration, parse_size
from rsm.segment.errors import InvalidConfigError

E = TypeVar("E", bound=Enum)
UNLIMITED = 1 << 62
"""The value of `most` for an option that has no upper bound."""
_MIN_LIKENESS = 0.75  # A name is suggested only if difflib's ratio reaches this value.


class OptionType(Enum):
    """Represents what a user types as the value of an option."""

    TEXT = "text"
    FILE = "file"
    LIST = "list"
    PATTERN = "pattern"
    JSON = "JSON"
    NUMBER = "number"
    DURATION = "duration"
    SIZE = "size"
    FLAG = "boolean"
    CHOICE = "enum"


def _whole_number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


_PARSERS: Mapping[OptionType, Callable[[str], int]] = {
    OptionType.NUMBER: _whole_number,
    OptionType.DURATION: parse_duration,
    OptionType.SIZE: parse_size,
}
_FORMATS: Mapping[OptionType, Callable[[int], str]] = {
    OptionType.NUMBER: str,
    OptionType.DURATION: format_duration,
    OptionType.SIZE: format_size,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOption:
    """Describes an option of the data source, for its parser and for docs/spark-jobs.md.

    `default` is text as a user types it; empty if there is none. `least` and `most` bound a number,
    a duration in ms or a size in bytes. `in_kafka_source` describes the same option of Spark's
    Kafka source.
    """

    name: str
    type: OptionType
    meaning: str
    example: str
    default: str = ""
    least: int = 0
    most: int = UNLIMITED
    choices: tuple[str, ...] = ()
    in_kafka_source: str = "none"

    @property
    def values(self) -> str:
        """Return the choices and bounds for docs and errors; the type if there are none."""
        found = list(self.choices)
        if self.type in _FORMATS:
            least, most = map(_FORMATS[self.type], (self.least, self.most))
            bounds = f"at least {least}" if self.most == UNLIMITED else f"from {least} to {most}"
            found.append(f"a {self.type.value} {bounds}")
        return " or ".join(found) or self.type.value


class OptionValues:
    """Represents the user's options.

    Names are case-insensitive, because Spark converts them to lower case.
    Methods that parse raise InvalidConfigError with the option, its value and the expected value.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in options.items()}

    def names(self) -> list[str]:
        """Return the names in lower case."""
        return list(self._given)

    def has(self, name: str) -> bool:
        """Return whether the option was given."""
        return name.lower() in self._given

    def text(self, name: str) -> str | None:
        """Return the option's text; None if the user did not give it."""
        return self._given.get(name.lower())

    def listed(self, name: str, expected: str) -> tuple[str, ...]:
        """Return the parts between commas, without duplicates."""
        text = self._given[name.lower()]
        found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        if not all(found):
            raise wrong_value(name, text, expected)
        return found

    def amount(self, option: SourceOption) -> int:
        """Parse a number, a duration or a size within the option's bounds.

        Returns a duration in ms and a size in bytes. A value without a unit is in the same unit.
        """
        text = self._given.get(option.name.lower(), option.default)
        try:
            found = _PARSERS[option.type](text)
        except ValueError as error:
            raise wrong_value(option.name, text, option.values) from error
        if not option.least <= found <= option.most:
            raise wrong_value(option.name, text, option.values)
        return found

    def amount_if_given(self, option: SourceOption) -> int | None:
        """Parse as `amount` does; return None if the option was not given."""
        return self.amount(option) if self.has(option.name) else None

    def flag(self, name: str, *, default: bool) -> bool:
        """Parse true or false in any case."""
        text = self._given.get(name.lower(), str(default)).lower()
        if text not in ("true", "false"):
            raise wrong_value(name, text, "true or false")
        return text == "true"

    def choice(self, name: str, kind: type[E], default: E) -> E:
        """Parse one of an enum's values in any case; `default` if the option was not given."""
        text = self._given.get(name.lower())
        if text is None:
            return default
        by_name = {str(each.value): each for each in kind}
        if text.lower() not in by_name:
            raise wrong_value(name, text, " or ".join(by_name))
        return by_name[text.lower()]

    def pattern(self, name: str) -> re.Pattern[str]:
        """Parse a regular expression."""
        text = self._given[name.lower()]
        try:
            return re.compile(text)
        except re.error as error:
            raise wrong_value(name, text, f"a regular expression: {error}") from error

    def mapping(self, name: str, expected: str) -> dict[str, object]:
        """Parse a JSON object."""
        text = self._given[name.lower()]
        try:
            found = json.loads(text)
        except ValueError as error:
            raise wrong_value(name, text, expected) from error
        if not isinstance(found, dict):
            raise wrong_value(name, text, expected)
        return found


def wrong_value(name: str, found: str, expected: str) -> InvalidConfigError:
    """Return the error for an invalid value of the option `name`."""
    return InvalidConfigError(
        "the option's value is invalid", option=name, found=found, expected=expected
    )


def unknown_option(
    name: str, known: Iterable[str], *, common_prefix: str = ""
) -> InvalidConfigError:
    """Return the error for an unknown option, with the most similar known name if one is close.

    Compares names without their `common_prefix`.
    """
    by_key = {each.lower().removeprefix(common_prefix): each for each in known}
    key = name.lower().removeprefix(common_prefix)
    close = get_close_matches(key, by_key, n=1, cutoff=_MIN_LIKENESS)
    suggestion = (
        {"did_you_mean": by_key[close[0]]}
        if close
        else {"advice": "Remove it; docs/spark-jobs.md lists all options"}
    )
    return InvalidConfigError("the option is unknown", option=name, **suggestion)
