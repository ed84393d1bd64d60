"""Parses durations and sizes that people type, and formats them. Pure.

    amount   = number [unit]
    duration = ms s m h d              lower case
    size     = B KiB MiB GiB TiB PiB   powers of 1024, any case
               kB MB GB TB PB          powers of 1000, any case

Amounts are whole numbers, and results are whole ms or bytes, so that no rounding changes a
retention. If an amount has no unit, the caller's unit applies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

DURATION_UNITS: Mapping[str, int] = MappingProxyType(
    {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
)
"""The milliseconds of each unit, in ascending order."""

SIZE_UNITS: Mapping[str, int] = MappingProxyType(
    {
        "B": 1,
        **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTP", start=1)},
        **{f"{prefix}B": 1000**power for power, prefix in enumerate("kMGTP", start=1)},
    }
)
"""The bytes of each unit; the binary units come first, each kind in ascending order."""

_BINARY_UNITS = {unit: size for unit, size in SIZE_UNITS.items() if unit == "B" or "i" in unit}
_FOLDED_SIZE_UNITS = {unit.lower(): size for unit, size in SIZE_UNITS.items()}
_AMOUNT = re.compile(r"([0-9]{1,19})[ ]?([A-Za-z]*)", re.ASCII)


def parse_duration(text: str, *, unit_ms: int = 1) -> int:
    """Return a duration in milliseconds; the default unit is `unit_ms`. Raises ValueError."""
    number, unit = _split(text, "a duration like 7d, 12h, 30m, 90s or 500ms")
    if unit and unit not in DURATION_UNITS:
        raise ValueError(f"unknown unit {unit!r} in {text!r}: use {', '.join(DURATION_UNITS)}")
    return number * DURATION_UNITS.get(unit, unit_ms)


def parse_size(text: str, *, unit_bytes: int = 1) -> int:
    """Return a size in bytes; the default unit is `unit_bytes`. Raises ValueError."""
    number, unit = _split(text, "a size like 50GiB or 64MB")
    folded = unit.lower()
    if unit and folded not in _FOLDED_SIZE_UNITS:
        raise ValueError(f"unknown unit {unit!r} in {text!r}: use {', '.join(SIZE_UNITS)}")
    return number * _FOLDED_SIZE_UNITS.get(folded, unit_bytes)


def format_duration(duration_ms: int) -> str:
    """Format a duration in the largest unit that divides it; `parse_duration` parses the result."""
    return _format(duration_ms, DURATION_UNITS)


def format_size(size_bytes: int) -> str:
    """Format a size in the largest binary unit that divides it; `parse_size` parses the result."""
    return _format(size_bytes, _BINARY_UNITS)


def _split(text: str, expected: str) -> tuple[int, str]:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not {expected}")
    return int(found[1]), found[2]


def _format(amount: int, units: Mapping[str, int]) -> str:
    fitting = [name for name, size in units.items() if amount >= size and amount % size == 0]
    unit = fitting[-1] if fitting else next(iter(units))
    return f"{amount // units[unit]}{unit}"
