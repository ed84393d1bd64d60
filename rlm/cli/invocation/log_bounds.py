"""Parses partition names, and bounds of a log, which are offsets or timestamps. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from rsm.config.values import require_topic_name
from rsm.segment.errors import InvalidConfigError

_OFFSET = re.compile(r"[0-9]{1,19}", re.ASCII)
_EPOCH_MS = re.compile(r"@([0-9]{1,15})", re.ASCII)
_GREATEST_PARTITION = 2**31 - 1  # Kafka's int32
_GREATEST_OFFSET = 2**63 - 1  # Kafka's int64


def optional_topic_name(text: str | None) -> str | None:
    """Return None for None; otherwise check the name as `require_topic_name` does."""
    return None if text is None else require_topic_name(text)


def require_offset(offset: int | None) -> int | None:
    """Return `offset`. Raises InvalidConfigError if it is above Kafka's largest offset."""
    if offset is not None and offset > _GREATEST_OFFSET:
        raise InvalidConfigError(
            "the offset is invalid: it is too large",
            found=offset,
            expected=f"at most {_GREATEST_OFFSET}",
        )
    return offset


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionName:
    """Represents a partition by name; `partition` None means all partitions of the topic."""

    topic: str
    partition: int | None = None

    @classmethod
    def parse(cls, text: str) -> PartitionName:
        """Parse TOPIC or TOPIC:P. Raises InvalidConfigError."""
        topic, colon, partition = text.partition(":")
        if not topic or (colon and not _OFFSET.fullmatch(partition)):
            raise InvalidConfigError(
                "the partition's name is invalid",
                found=text,
                expected="TOPIC or TOPIC:PARTITION",
            )
        require_topic_name(topic)
        if colon and int(partition) > _GREATEST_PARTITION:
            raise InvalidConfigError(
                "the partition's number is invalid: it is too large",
                found=text,
                expected=f"at most {_GREATEST_PARTITION}",
            )
        return cls(topic=topic, partition=int(partition) if colon else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Represents a position in a log: an offset, or the first record at or after a timestamp."""

    offset: int | None = None
    timestamp_ms: int | None = None

    def __str__(self) -> str:
        return f"@{self.timestamp_ms}" if self.offset is None else str(self.offset)

    def is_before(self, other: Bound) -> bool:
        """Return whether this is before `other` in any log.

        Returns False for an offset and a timestamp, whose order depends on the log.
        """
        if self.offset is not None and other.offset is not None:
            return self.offset < other.offset
        if self.timestamp_ms is not None and other.timestamp_ms is not None:
            return self.timestamp_ms < other.timestamp_ms
        return False

    @classmethod
    def parse(cls, text: str, *, option: str) -> Bound:
        """Parse an offset, an ISO 8601 time (UTC by default), or @ and milliseconds.

        `option` is the name of the option for the error. Raises InvalidConfigError.
        """
        if _OFFSET.fullmatch(text):
            return cls(offset=require_offset(int(text)))
        if (since := _EPOCH_MS.fullmatch(text)) is not None:
            return cls(timestamp_ms=int(since[1]))
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidConfigError(
                "the offset or time is invalid",
                option=option,
                found=text,
                expected="1234, 2030-01-31T12:00:00Z or @1893456000000",
            ) from None
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return cls(timestamp_ms=round(aware.timestamp() * 1000))
