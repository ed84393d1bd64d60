"""Formats timestamps, durations and sizes for people; `--json` shows the exact numbers. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def age_text(age_ms: int) -> str:
    """Format a duration for people, in the largest unit that gives at least 2."""
    if 0 < age_ms < 2_000:
        return f"{age_ms} ms"
    seconds = age_ms // 1000
    for unit, unit_s in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * unit_s:
            return f"{seconds // unit_s} {unit}"
    return f"{seconds} s"


def size_text(size_bytes: int) -> str:
    """Format a number of bytes for people, in its largest unit and at most 8 characters."""
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1023.5:  # A larger size would be rounded to 1024.
            break
        size, unit = size / 1024, larger
    digits = 0 if unit == "B" or size >= 99.95 else 1
    return f"{size:.{digits}f} {unit}"


def iso_time(timestamp_ms: int) -> str:
    """Format milliseconds since 1970 as ISO 8601 in UTC; "-" if negative, @ms after year 9999."""
    if timestamp_ms < 0:
        return "-"
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:  # Producers may set any timestamp.
        return f"@{timestamp_ms}"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
