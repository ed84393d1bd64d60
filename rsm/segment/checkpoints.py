"""Parses the small text files next to a broker's logs, strictly.

Malformed content raises CorruptError. This module does not know where the files are, or that a
broker replaces them atomically.

    leader-epoch-checkpoint   0, count, then lines `epoch start-offset`
    partition.metadata        `version: 0`, `topic_id: <22 characters>`
    meta.properties           Java properties: version; cluster.id; node.id (version 1)
                              or broker.id (version 0, ZooKeeper); directory.id since
                              Kafka 3.7

Source: org.apache.kafka.server.common.CheckpointFile, the classes of
org.apache.kafka.storage.internals.checkpoint, org.apache.kafka.metadata.properties.MetaProperties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import javaproperties

from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, InvalidConfigError, UnsupportedError
from rsm.segment.ids import id_from_text

_CHECKPOINT_VERSION = "0"
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_NODE_ID_KEYS = {"0": "broker.id", "1": "node.id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """Represents the identity of a log dir. `directory_id` is None before Kafka 3.7."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None = None


def parse_leader_epochs(content: bytes, *, file: str) -> Lineage:
    """Parse a `leader-epoch-checkpoint`; `file` names it in the CorruptError."""
    pairs = []
    for number, line in _checkpoint_lines(content, file):
        epoch, start_offset = _fields(line, 2, file, number)
        pairs.append((_number(epoch, file, number), _number(start_offset, file, number)))
    try:
        return Lineage.of(*pairs)
    except ValueError as error:
        message = "the leader epochs do not ascend"
        raise CorruptError(message, file=file, found=str(error)) from error


def parse_partition_metadata(content: bytes, *, file: str) -> UUID:
    """Parse the topic id of a `partition.metadata`; `file` names it in the CorruptError."""
    lines = _text(content, file).splitlines()
    if len(lines) != 2:
        raise _malformed(file, 1, "two lines", f"{len(lines)} lines")
    if lines[0] != "version: 0":
        raise _malformed(file, 1, "version: 0", lines[0])
    key, separator, value = lines[1].partition(": ")
    if (key, separator) != ("topic_id", ": "):
        raise _malformed(file, 2, "topic_id: <id>", lines[1])
    topic_id = _id(value, file, 2)
    if topic_id.int == 0:
        raise _malformed(file, 2, "an id that is not zero", value)
    return topic_id


def parse_meta_properties(content: bytes, *, file: str) -> MetaProperties:
    """Parse a `meta.properties`; `file` names it in the CorruptError.

    Raises UnsupportedError for a version other than 0 or 1.
    """
    properties = _properties(content, file)
    version = _property(properties, "version", file)
    if version not in _NODE_ID_KEYS:
        raise UnsupportedError(
            "the version of meta.properties is unknown", file=file, version=version
        )
    directory_id = properties.get("directory.id")
    return MetaProperties(
        cluster_id=_property(properties, "cluster.id", file),
        node_id=_number(_property(properties, _NODE_ID_KEYS[version], file), file, None),
        directory_id=None if directory_id is None else _id(directory_id, file, None),
    )


def _checkpoint_lines(content: bytes, file: str) -> list[tuple[int, str]]:
    """Return the lines after the version and the count, with their line numbers.

    Raises CorruptError if the count is wrong.
    """
    text = _text(content, file)
    # If the file is cut off within a number, the rest of the number may look valid.
    if not text.endswith("\n"):
        raise _malformed(file, text.count("\n") + 1, "an end of line", text[-40:])
    lines = text.split("\n")[:-1]
    if lines[0] != _CHECKPOINT_VERSION:
        raise _malformed(file, 1, f"version {_CHECKPOINT_VERSION}", lines[0])
    if len(lines) < 2:
        raise _malformed(file, 2, "a count", "end of file")
    count = _number(lines[1], file, 2)
    if count != len(lines) - 2:
        raise _malformed(file, 2, f"{len(lines) - 2} lines", lines[1])
    return list(enumerate(lines[2:], start=3))


def _fields(line: str, count: int, file: str, number: int) -> list[str]:
    fields = line.split(" ")
    if len(fields) != count or not all(fields):
        raise _malformed(file, number, f"{count} fields", line)
    return fields


def _properties(content: bytes, file: str) -> dict[str, str]:
    try:
        pairs = javaproperties.loads(_text(content, file), object_pairs_hook=list)
    except ValueError as error:
        raise CorruptError("the file is malformed", file=file, found=str(error)) from error
    properties = dict(pairs)
    if len(properties) != len(pairs):
        found = ", ".join(key for key, _ in pairs)
        raise CorruptError(
            "the file is malformed", file=file, expected="each key once", found=found
        )
    return properties


def _property(properties: Mapping[str, str], key: str, file: str) -> str:
    value = properties.get(key)
    if not value:
        raise CorruptError("a key is missing", file=file, key=key)
    return value


def _number(text: str, file: str, number: int | None) -> int:
    if not _NUMBER.fullmatch(text) or int(text) >= 1 << 63:
        raise _malformed(file, number, "a number >= 0", text)
    return int(text)


def _id(text: str, file: str, number: int | None) -> UUID:
    try:
        return id_from_text(text)
    except InvalidConfigError as error:
        raise _malformed(file, number, "an id of 22 characters", text) from error


def _text(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptError("the file is not UTF-8", file=file, position=error.start) from error


def _malformed(file: str, line: int | None, expected: str, found: str) -> CorruptError:
    return CorruptError(
        "the file is malformed", file=file, line=line, expected=expected, found=found
    )
