"""Parses a partition's name, and bounds in a log that are offsets or times. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from rsm.segment.errors import InvalidConfigError

_OFFSET = re.compile(r"[0-9]{1,19}", re.ASCII)
_EPOCH_MS = re.compile(r"@([0-9]{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionName:
    """A partition by name; `partition` None means all partitions of the topic."""

    topic: str
    partition: int | None = None

    @classmethod
    def parse(cls, text: str) -> PartitionName:
        """Parse TOPIC or TOPIC:P. InvalidConfigError."""
        topic, colon, partition = text.partition(":")
        if topic and not colon:
            return cls(topic=topic)
        if not topic or not _OFFSET.fullmatch(partition):
            raise InvalidConfigError(
                "cannot parse the partition", found=text, expected="TOPIC:PARTITION"
            )
        return cls(topic=topic, partition=int(partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A position in a log: an offset, or the first record at or after a time."""

    offset: int | None = None
    timestamp_ms: int | None = None

    @classmethod
    def parse(cls, text: str, *, option: str) -> Bound:
        """Parse an offset, an ISO 8601 time (UTC by default), or @ and milliseconds.

        Raises InvalidConfigError with the option's name.
        """
        if _OFFSET.fullmatch(text):
            return cls(offset=int(text))
        if (since := _EPOCH_MS.fullmatch(text)) is not None:
            return cls(timestamp_ms=int(since[1]))
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidConfigError(
                "cannot parse the offset or time",
                option=option,
                found=text,
                expected="1234, 2030-01-31T12:00:00Z or @1893456000000",
            ) from None
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return cls(timestamp_ms=round(aware.timestamp() * 1000))
