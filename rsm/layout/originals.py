"""Encodes and decodes a topic's originals, and the keys of their objects in the store.

    <prefix>/originals/<topic>-<topic id>/<number>.json

Originals are the topic's own settings from before it was tiered. The number has ten digits and
counts from 0; the object with the highest number is current. Segment keys differ: they begin with a
topic and its id. The content is JSON for people and programs; docs/formats/originals.md describes
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from rsm.segment.errors import CorruptError, InvalidConfigError, UnsupportedError
from rsm.segment.ids import id_from_text, id_to_text

FORMAT = 1
_DIRECTORY = "originals"
_KEY = re.compile(
    rf"{_DIRECTORY}/(?P<topic>[A-Za-z0-9._-]{{1,249}})-(?P<topic_id>[A-Za-z0-9_-]{{22}})"
    r"/(?P<number>[0-9]{10})\.json",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalSettings:
    """Represents a topic's overrides by name; None means that the topic had no such override."""

    topic: str
    topic_id: UUID
    values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalsKey:
    """Represents a parsed key: the topic and the number of the originals."""

    topic: str
    topic_id: UUID
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalsKeys:
    """Builds and parses keys below one prefix, that of the segments (`ObjectKeys.prefix`)."""

    prefix: str = ""

    def build(self, key: OriginalsKey) -> str:
        """Encode a key."""
        return f"{self.of_topic(key.topic, key.topic_id)}{key.number:010d}.json"

    def of_topic(self, topic: str, topic_id: UUID) -> str:
        """Return the common prefix of one topic's keys."""
        return f"{self.of_all}{topic}-{id_to_text(topic_id)}/"

    @property
    def of_all(self) -> str:
        """Return the common prefix of all topics' keys."""
        return f"{self.prefix}/{_DIRECTORY}/" if self.prefix else f"{_DIRECTORY}/"

    def parse(self, text: str) -> OriginalsKey | None:
        """Decode a key that `build` encoded; return None for any other name."""
        match = _KEY.fullmatch(text.removeprefix(f"{self.prefix}/") if self.prefix else text)
        if match is None:
            return None
        try:
            topic_id = id_from_text(match["topic_id"])
        except InvalidConfigError:
            return None
        key = OriginalsKey(topic=match["topic"], topic_id=topic_id, number=int(match["number"]))
        # The comparison also refuses another prefix, and ids with nonzero unused bits.
        return key if self.build(key) == text else None


def encode_originals(settings: OriginalSettings) -> bytes:
    """Encode the object's content."""
    document = {
        "format": FORMAT,
        "topic": settings.topic,
        "topic_id": id_to_text(settings.topic_id),
        "originals": dict(sorted(settings.values.items())),
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def decode_originals(content: bytes) -> OriginalSettings:
    """Decode the object's content.

    Raises UnsupportedError for another format, CorruptError for other invalid content.
    """
    try:
        document = json.loads(content)
        found = document["format"]
        settings = _settings_of(document) if found == FORMAT else None
    except (ValueError, KeyError, TypeError, RecursionError, InvalidConfigError) as error:
        raise CorruptError("the topic's originals are invalid", reason=error) from error
    if settings is None:
        raise UnsupportedError("the format of the topic's originals is unknown", format=found)
    return settings


def _settings_of(document: Mapping[str, object]) -> OriginalSettings:
    values = document["originals"]
    if not isinstance(values, dict) or not all(
        isinstance(each, str | None) for each in values.values()
    ):
        raise TypeError("`originals` must map names to texts or null")
    return OriginalSettings(
        topic=str(document["topic"]),
        topic_id=id_from_text(str(document["topic_id"])),
        values=values,
    )
