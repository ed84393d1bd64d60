"""Finds the unit of a setting by the name of its field, and converts amounts to it. Pure.

A field's name ends with the unit. The value of a setting in ms, seconds, bytes or bytes per second
can also be a duration or a size (rsm.config.amounts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import ascii_letters
from types import MappingProxyType

from rsm.config.amounts import format_duration, format_size, parse_duration, parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountGrammar:
    """Represents how people type amounts of one kind, with `samples` in its smallest unit."""

    name: str
    parse: Callable[[str], int]
    format: Callable[[int], str]
    samples: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Represents the unit of a setting: `size` times the smallest unit of `grammar`.

    If `grammar` is None, the setting accepts only plain numbers.
    """

    symbol: str = ""
    grammar: AmountGrammar | None = None
    size: int = 1

    def in_units(self, text: str) -> str:
        """Convert a duration or size with a unit to a number of this unit.

        Returns any other text unchanged, and also an amount that is not a whole number of this
        unit.
        """
        if self.grammar is None or not text.endswith(tuple(ascii_letters)):
            return text
        try:
            amount = self.grammar.parse(text)
        except ValueError:
            return text
        return text if amount % self.size else str(amount // self.size)

    def readable(self, number: int) -> str:
        """Return a number as a duration or size in a larger unit.

        Returns an empty string if no larger unit divides the number, or if the number is not
        positive.
        """
        if self.grammar is None or number <= 0:
            return ""
        text = self.grammar.format(number * self.size)
        return "" if text.rstrip(ascii_letters) == str(number) else text


_DURATION = AmountGrammar(
    name="duration",
    parse=parse_duration,
    format=format_duration,
    samples=(7 * 86_400_000, 1_000),
)
_SIZE = AmountGrammar(
    name="size", parse=parse_size, format=format_size, samples=(50 << 30, 64 << 20)
)
_NO_UNIT = Unit()

_UNITS: Mapping[str, Unit] = MappingProxyType(
    {
        "_ms": Unit(symbol="ms", grammar=_DURATION),
        "_seconds": Unit(symbol="seconds", grammar=_DURATION, size=1_000),
        "_bytes": Unit(symbol="bytes", grammar=_SIZE),
        "bytes_per_second": Unit(symbol="bytes per second", grammar=_SIZE),
        "requests_per_second": Unit(symbol="requests per second"),
        "segments_per_second": Unit(symbol="segments per second"),
        "_percent": Unit(symbol="percent"),
        "_percent_per_day": Unit(symbol="percent per day"),
    }
)
"""The units of settings, by the end of the field's name."""


def unit_of(name: str) -> Unit:
    """Return the unit of a field; its symbol is empty if the field has no unit."""
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), _NO_UNIT)
