"""Formats sizes, prices, durations and counts for people. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP = 1024
_GIB = 1 << 30
_DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_LEAST_SHOWN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Represents the price of storing one GiB for a month."""

    per_gib_month: float
    currency: str

    def of(self, size_bytes: int) -> str:
        """Format the price of storing `size_bytes` for a month."""
        amount = size_bytes / _GIB * self.per_gib_month
        if 0 < amount < _LEAST_SHOWN:
            return f"< {_LEAST_SHOWN} {self.currency}"
        return f"{amount:,.2f} {self.currency}"


def count(number: int, singular: str, plural: str = "") -> str:
    """Format a count with its noun: `1 range`, `1,234 ranges`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def size(size_bytes: int) -> str:
    """Format a size: `17 B`, `1.5 GiB`."""
    amount = float(size_bytes)
    for unit in _UNITS:
        if amount < _STEP or unit == _UNITS[-1]:
            break
        amount /= _STEP
    return f"{size_bytes} B" if unit == "B" else f"{amount:,.1f} {unit}"


def duration(milliseconds: int) -> str:
    """Format a duration in its two largest units: `1 d 2 h`, `3 min 4 s`; below 1 s: `0.4 s`."""
    if milliseconds < _DURATIONS[-1][0]:
        return f"{milliseconds / 1000:g} s"
    parts: list[str] = []
    for unit_ms, unit in _DURATIONS:
        number, milliseconds = divmod(milliseconds, unit_ms)
        if number or parts:
            parts.append(f"{number} {unit}" if number else "")
    return " ".join(part for part in parts[:2] if part)
