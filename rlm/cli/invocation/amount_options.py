"""Builds typer's parsers of options that are durations or sizes.

Each parser takes a number in the option's own unit, or a number with a unit (rsm.config.amounts),
and returns the amount in the option's own unit. typer also parses an option's default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import typer

from rsm.config.amounts import format_duration, format_size, parse_duration, parse_size

LONGEST_S = 30 * 86_400.0
SHORTEST_S = 0.1
_DAY_MS = 86_400_000
_LONGEST_MS = 2**63 - 1  # Kafka's long


def durations(*, unit_ms: int = 1, special: Collection[int] = ()) -> Callable[[object], int]:
    """Return a parser of durations in units of `unit_ms`; it also accepts each of `special`."""

    def duration(value: object) -> int:
        text = str(value)
        found = _in_units(
            text,
            partial(parse_duration, unit_ms=unit_ms),
            unit=unit_ms,
            unit_name=format_duration(unit_ms),
            special=special,
        )
        if found * unit_ms > _LONGEST_MS:
            raise typer.BadParameter(f"{text!r} is too long: at most {_LONGEST_MS // _DAY_MS}d")
        return found

    return duration


def sizes(
    *,
    unit_bytes: int = 1,
    special: Collection[int] = (),
    least_bytes: int = 0,
    most_bytes: int = 2**63 - 1,
) -> Callable[[object], int]:
    """Return a parser of sizes in units of `unit_bytes`; `special` need not be in the bounds."""

    def size(value: object) -> int:
        text = str(value)
        found = _in_units(
            text,
            partial(parse_size, unit_bytes=unit_bytes),
            unit=unit_bytes,
            unit_name=format_size(unit_bytes),
            special=special,
        )
        if found not in special and not least_bytes <= found * unit_bytes <= most_bytes:
            bounds = f"{format_size(least_bytes)} to {format_size(most_bytes)}"
            raise typer.BadParameter(f"{text!r} is not in the range {bounds}")
        return found

    return size


def seconds(*, least_s: float = SHORTEST_S) -> Callable[[object], float]:
    """Return a parser of durations up to 30 days, in seconds; a plain number may be fractional."""

    def duration(value: object) -> float:
        text = str(value)
        try:
            found = float(text)
        except ValueError:
            found = durations()(text) / 1000
        if not least_s <= found <= LONGEST_S:  # The negation also rejects NaN.
            bounds = f"{format_duration(round(least_s * 1000))} to 30d"
            raise typer.BadParameter(f"{text!r} is not in the range {bounds}")
        return found

    return duration


def _in_units(
    text: str,
    parse: Callable[[str], int],
    *,
    unit: int,
    unit_name: str,
    special: Collection[int],
) -> int:
    if text in map(str, special):
        return int(text)
    try:
        amount = parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if amount % unit:
        raise typer.BadParameter(f"{text!r} is not a multiple of {unit_name}")
    return amount // unit
