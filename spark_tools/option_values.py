"""Parses the values of the data source's options from Spark's text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from rsm.segment.errors import InvalidConfigError

E = TypeVar("E", bound=Enum)


class OptionValues:
    """Options by lower-case name: Spark lowers the case of the user's names.

    Each method raises InvalidConfigError with the option, the found and the expected value.
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
        """Return the given text."""
        return self._given.get(name.lower())

    def listed(self, name: str, expected: str) -> tuple[str, ...]:
        """Return the parts between commas, without duplicates."""
        text = self._given[name.lower()]
        found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        if not all(found):
            raise wrong_value(name, text, expected)
        return found

    def number(self, name: str, default: int, *, at_least: int, at_most: int) -> int:
        """Parse a whole number within the bounds."""
        text = self._given.get(name.lower())
        if text is None:
            return default
        if not text.isdecimal() or not at_least <= int(text) <= at_most:
            raise wrong_value(name, text, f"a number from {at_least} to {at_most}")
        return int(text)

    def number_if_given(self, name: str, *, at_least: int, at_most: int) -> int | None:
        """Parse a whole number within the bounds; None if the option was not given."""
        if not self.has(name):
            return None
        return self.number(name, 0, at_least=at_least, at_most=at_most)

    def flag(self, name: str, *, default: bool) -> bool:
        """Parse true or false in any case."""
        text = self._given.get(name.lower(), str(default)).lower()
        if text not in ("true", "false"):
            raise wrong_value(name, text, "true or false")
        return text == "true"

    def choice(self, name: str, kind: type[E], default: E) -> E:
        """Parse one of an enum's values."""
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
    """Return the error for a value that this option cannot have."""
    return InvalidConfigError(
        "the option's value is invalid", option=name, found=found, expected=expected
    )
