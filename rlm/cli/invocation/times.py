"""Formats times for people. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_time(timestamp_ms: int) -> str:
    """Format milliseconds since 1970 as ISO 8601 in UTC; "-" if negative, @ms beyond calendars."""
    if timestamp_ms < 0:
        return "-"
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:  # producers may set any timestamp
        return f"@{timestamp_ms}"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
