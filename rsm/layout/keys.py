"""The grammar of object keys, built and parsed in this one place.

    <prefix>/<topic>-<topic id>/<partition>/<base offset>-<segment id>.<suffix>

An empty prefix adds no slash. Ids are Kafka's 22 characters; the base offset has 20 digits, so that
a partition's objects sort by offset; the partition has no leading zeros. A topic's name cannot
hold a "/", and the id behind it has a fixed length, so every key has one reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition, id_from_text, id_to_text

_ID = "[A-Za-z0-9_-]{22}"
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")  # org.apache.kafka Topic.validate
_SUFFIX = re.compile("[a-z0-9][a-z0-9_.-]*")
_KEY = re.compile(
    rf"(?P<topic>[A-Za-z0-9._-]{{1,249}})-(?P<topic_id>{_ID})"
    rf"/(?P<partition>0|[1-9][0-9]{{0,9}})"
    rf"/(?P<base_offset>[0-9]{{20}})-(?P<segment_id>{_ID})"
    rf"\.(?P<suffix>[a-z0-9][a-z0-9_.-]*)",
    re.ASCII,
)
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectKey:
    """What a key says: whose segment it is, where that begins, and which object of it."""

    segment_id: RemoteLogSegmentId
    base_offset: int
    suffix: str

    def __post_init__(self) -> None:
        if not _TOPIC.fullmatch(self.segment_id.topic_id_partition.topic):
            raise ValueError(f"not a topic: {self.segment_id.topic_id_partition.topic!r}")
        if self.segment_id.topic_id_partition.partition > _MAX_PARTITION:
            raise ValueError(f"not a partition: {self.segment_id.topic_id_partition.partition}")
        if not 0 <= self.base_offset <= _MAX_OFFSET:
            raise ValueError(f"not an offset: {self.base_offset}")
        if not _SUFFIX.fullmatch(self.suffix):
            raise ValueError(f"not a suffix: {self.suffix!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectKeys:
    """The keys below one prefix. Raises InvalidConfigError for a prefix that can't be one."""

    prefix: str = ""

    def __post_init__(self) -> None:
        segments = self.prefix.split("/") if self.prefix else []
        if any(segment in {"", ".", ".."} for segment in segments):
            raise InvalidConfigError(
                "not a key prefix",
                key="rsm.config.key.prefix",
                found=repr(self.prefix),
                expected="segments joined by single slashes, none before or behind them",
            )

    def build(self, key: ObjectKey) -> str:
        """Spell a key."""
        segment_id = id_to_text(key.segment_id.id)
        partition = self.partition_prefix(key.segment_id.topic_id_partition)
        return f"{partition}{key.base_offset:020d}-{segment_id}.{key.suffix}"

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        """What the keys of all of a partition's objects begin with."""
        topic_id = id_to_text(partition.topic_id)
        return f"{self._start}{partition.topic}-{topic_id}/{partition.partition}/"

    def parse(self, text: str) -> ObjectKey | None:
        """Read what `build` writes; None for any other name, as a listing may show."""
        match = _KEY.fullmatch(text.removeprefix(self._start))
        if match is None:
            return None
        try:
            key = _key_of(match)
        except (ValueError, InvalidConfigError):
            return None
        # Also refuses another prefix, and ids whose unused bits are not zero.
        return key if self.build(key) == text else None

    @property
    def _start(self) -> str:
        return f"{self.prefix}/" if self.prefix else ""


def _key_of(match: re.Match[str]) -> ObjectKey:
    return ObjectKey(
        segment_id=RemoteLogSegmentId(
            topic_id_partition=TopicIdPartition(
                topic_id=id_from_text(match["topic_id"]),
                topic=match["topic"],
                partition=int(match["partition"]),
            ),
            id=id_from_text(match["segment_id"]),
        ),
        base_offset=int(match["base_offset"]),
        suffix=match["suffix"],
    )
