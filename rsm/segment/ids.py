"""Represents the ids of partitions and remote log segments, and converts ids to and from text.

Code uses `uuid.UUID`. Keys, JSON and logs use Kafka's text form: 22 characters of base64url without
padding (org.apache.kafka.common.Uuid).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from uuid import UUID

from rsm.segment.errors import InvalidConfigError

ID_TEXT_LENGTH = 22


def id_to_text(value: UUID) -> str:
    """Encode an id as Kafka does: 22 characters, base64url without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def id_from_text(text: str) -> UUID:
    """Decode an id. Raises InvalidConfigError unless it is 22 characters of base64url."""
    try:
        raw = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise _not_an_id(text) from error
    if len(raw) != 16 or len(text) != ID_TEXT_LENGTH:
        raise _not_an_id(text)
    return UUID(bytes=raw)


def _not_an_id(text: str) -> InvalidConfigError:
    return InvalidConfigError(
        "the text is not an id in Kafka's form",
        found=text,
        expected=f"{ID_TEXT_LENGTH} letters, digits, '-' and '_'",
    )


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TopicIdPartition:
    """Represents a partition (KIP-516). The id identifies the topic; its name can be reused."""

    topic_id: UUID
    topic: str
    partition: int
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.partition < 0:
            raise ValueError(f"the partition is invalid: {self.partition}, expected >= 0")
        object.__setattr__(self, "_hash", hash((self.topic_id, self.partition)))

    def __hash__(self) -> int:  # The hash is cached, because many tables use partitions as keys.
        return self._hash

    def __str__(self) -> str:
        return f"{self.topic}-{id_to_text(self.topic_id)}:{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RemoteLogSegmentId:
    """Identifies one attempt to store a log segment; each attempt gets a new `id` (KIP-405)."""

    topic_id_partition: TopicIdPartition
    id: UUID

    def __str__(self) -> str:
        return f"{self.topic_id_partition}:{id_to_text(self.id)}"
