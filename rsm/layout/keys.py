"""Builds and parses the keys of segments' objects; no other module does.

    <prefix>/<topic>-<topic id>/<partition>/<base offset>-<segment id>.<suffix>
    <prefix>/<topic>-<topic id>/<partition>/<base offset>-<segment id>.<suffix>.<chunk number>
    <prefix>/<topic>-<topic id>/<partition>/<segment uuid>-ledger-<base offset><part>
    <prefix>/<topic>-<topic id>/<partition>/<segment uuid><part>

PIP-17 defines the third form, with the log segment as the ledger. PIP-76 defines the fourth form.
A chunk's key ends with the chunk number in five digits. An empty prefix adds no slash. Ids have
Kafka's 22 characters. The base offset has 20 digits, so that a partition's objects sort by offset.
The partition has no leading zeros. In Pulsar's forms the segment id is a UUID with hyphens, as Java
prints it, and the base offset has no leading zeros. A topic's name contains no "/", and the id
after the name has a fixed length, so each key has exactly one meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition, id_from_text, id_to_text
from rsm.segment.metadata import chunk_key

_ID = "[A-Za-z0-9_-]{22}"
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")  # org.apache.kafka Topic.validate
_SUFFIX = re.compile("[a-z0-9][a-z0-9_.-]*")
_CHUNK_SUFFIX = re.compile(r"(.+\.)[0-9]{5}", re.ASCII)
_PARTITION = (
    rf"(?P<topic>[A-Za-z0-9._-]{{1,249}})-(?P<topic_id>{_ID})/(?P<partition>0|[1-9][0-9]{{0,9}})"
)
_KEY = re.compile(
    rf"{_PARTITION}/(?P<base_offset>[0-9]{{20}})-(?P<segment_id>{_ID})"
    rf"\.(?P<suffix>{_SUFFIX.pattern})",
    re.ASCII,
)
_PULSAR_KEY = re.compile(
    rf"{_PARTITION}/(?P<uuid>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})"
    r"(?:-ledger-(?P<base_offset>0|[1-9][0-9]{0,18}))?(?P<part>(?:-index|-companion)?)",
    re.ASCII,
)
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectKey:
    """Represents a parsed key: a segment, its base offset, and the suffix of one object."""

    segment_id: RemoteLogSegmentId
    base_offset: int
    suffix: str

    def __post_init__(self) -> None:
        _check_segment(self.segment_id, self.base_offset)
        if not _SUFFIX.fullmatch(self.suffix):
            raise ValueError(f"the suffix is invalid: {self.suffix!r}")


class LedgerPart(Enum):
    """Lists the objects of a segment in Pulsar's forms; a value is the end of the object's name."""

    DATA = ""
    INDEX = "-index"
    COMPANION = "-companion"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerKey:
    """Represents a parsed key in PIP-17's form."""

    segment_id: RemoteLogSegmentId
    base_offset: int
    part: LedgerPart

    def __post_init__(self) -> None:
        _check_segment(self.segment_id, self.base_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedKey:
    """Represents a parsed key in PIP-76's form, which does not contain the base offset."""

    segment_id: RemoteLogSegmentId
    part: LedgerPart

    def __post_init__(self) -> None:
        _check_segment(self.segment_id, 0)


SegmentKey = ObjectKey | LedgerKey | StreamedKey
"""The key of one object of a segment, in any form."""


def numbered_chunk(key: SegmentKey, number: int) -> SegmentKey:
    """Return a chunk's key with `number` instead of its own; return any other key unchanged."""
    if not isinstance(key, ObjectKey) or not (found := _CHUNK_SUFFIX.fullmatch(key.suffix)):
        return key
    return replace(key, suffix=chunk_key(found[1], number))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectKeys:
    """Builds and parses keys below one prefix. Raises InvalidConfigError for an invalid prefix."""

    prefix: str = ""

    def __post_init__(self) -> None:
        segments = self.prefix.split("/") if self.prefix else []
        if any(segment in {"", ".", ".."} for segment in segments):
            raise InvalidConfigError(
                "the key prefix is invalid",
                key="rsm.config.key.prefix",
                found=repr(self.prefix),
                expected="names other than . and .., separated by single slashes",
            )

    def build(self, key: SegmentKey) -> str:
        """Encode a key."""
        partition = self.partition_prefix(key.segment_id.topic_id_partition)
        if isinstance(key, LedgerKey):
            return partition + ledger_name(key.base_offset, key.segment_id.id, key.part)
        if isinstance(key, StreamedKey):
            return partition + streamed_name(key.segment_id.id, key.part)
        return segment_prefix(partition, key.base_offset, key.segment_id.id) + key.suffix

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        """Return the common prefix of a partition's keys."""
        topic_id = id_to_text(partition.topic_id)
        return f"{self._start}{partition.topic}-{topic_id}/{partition.partition}/"

    def topic_prefix(self, topic: str, topic_id: UUID) -> str:
        """Return the common prefix of a topic's keys. Raises the errors of `name_prefix`."""
        return f"{self.name_prefix(topic)}{id_to_text(topic_id)}/"

    def name_prefix(self, topic: str) -> str:
        """Return the common prefix of the keys of all topics of the same name, with any id.

        Keys of topics whose names begin with this name and a hyphen have the prefix, too. Raises
        InvalidConfigError for a name that no topic can have.
        """
        if not _TOPIC.fullmatch(topic):
            raise InvalidConfigError("the topic's name is invalid", topic=topic)
        return f"{self._start}{topic}-"

    def parse(self, text: str) -> SegmentKey | None:
        """Decode a key that `build` encoded; return None for any other name in a listing."""
        name = text.removeprefix(self._start)
        match = _KEY.fullmatch(name) or _PULSAR_KEY.fullmatch(name)
        if match is None:
            return None
        try:
            key = _key_of(match) if match.re is _KEY else _pulsar_key_of(match)
        except (ValueError, InvalidConfigError):
            return None
        # The comparison also refuses another prefix, and ids with nonzero unused bits.
        return key if self.build(key) == text else None

    @property
    def _start(self) -> str:
        return f"{self.prefix}/" if self.prefix else ""


def after_all_below(prefix: str) -> str:
    """Return the lowest name that sorts after all names below `prefix`.

    `prefix` ends with "/". A listing that continues after this name omits no other key.
    """
    return prefix.removesuffix("/") + chr(ord("/") + 1)


def segment_of_key(text: str) -> RemoteLogSegmentId | None:
    """Return the segment that a key names, with any prefix; None for other names."""
    below = text.rsplit("/", 3)
    try:
        key = ObjectKeys(prefix="/".join(below[:-3])).parse(text)
    except InvalidConfigError:
        return None
    return None if key is None else key.segment_id


def segment_prefix(partition_prefix: str, base_offset: int, segment_id: UUID) -> str:
    """Return the common prefix of one segment's keys that are not in Pulsar's forms."""
    return f"{partition_prefix}{base_offset:020d}-{id_to_text(segment_id)}."


def ledger_name(ledger_id: int, uuid: UUID, part: LedgerPart) -> str:
    """Return PIP-17's name of an offloaded ledger's object, without a prefix."""
    return f"{uuid}-ledger-{ledger_id}{part.value}"


def streamed_name(uuid: UUID, part: LedgerPart) -> str:
    """Return PIP-76's name of a streamed object or its index, without a prefix."""
    return f"{uuid}{part.value}"


def _check_segment(segment_id: RemoteLogSegmentId, base_offset: int) -> None:
    if not _TOPIC.fullmatch(segment_id.topic_id_partition.topic):
        raise ValueError(f"the topic name is invalid: {segment_id.topic_id_partition.topic!r}")
    if segment_id.topic_id_partition.partition > _MAX_PARTITION:
        raise ValueError(
            "the partition is invalid: "
            f"{segment_id.topic_id_partition.partition}, at most {_MAX_PARTITION}"
        )
    if not 0 <= base_offset <= _MAX_OFFSET:
        raise ValueError(f"the base offset is invalid: {base_offset}, from 0 to {_MAX_OFFSET}")


def _key_of(match: re.Match[str]) -> ObjectKey:
    return ObjectKey(
        segment_id=_segment_id_of(match, id_from_text(match["segment_id"])),
        base_offset=int(match["base_offset"]),
        suffix=match["suffix"],
    )


def _pulsar_key_of(match: re.Match[str]) -> LedgerKey | StreamedKey:
    segment_id = _segment_id_of(match, UUID(match["uuid"]))
    part = LedgerPart(match["part"])
    if match["base_offset"] is None:
        return StreamedKey(segment_id=segment_id, part=part)
    return LedgerKey(segment_id=segment_id, base_offset=int(match["base_offset"]), part=part)


def _segment_id_of(match: re.Match[str], segment_id: UUID) -> RemoteLogSegmentId:
    return RemoteLogSegmentId(
        topic_id_partition=TopicIdPartition(
            topic_id=id_from_text(match["topic_id"]),
            topic=match["topic"],
            partition=int(match["partition"]),
        ),
        id=segment_id,
    )
