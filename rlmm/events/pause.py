"""Defines the work on a topic that an operator has paused. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily
from rlmm.events.rows import ClusterReader
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind
from rsm.segment.metadata_codec import enum_from_number, id_from_bytes
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields


class PausableTask(Enum):
    """Represents a kind of work on a topic that an operator can pause."""

    COPY = 1
    TRIM = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPaused(Event):
    """Represents the paused work of one topic id; the last record wins.

    `unknown_fields` contains the additional fields of a newer version, as protobuf.
    """

    topic: str
    topic_id: UUID
    tasks: frozenset[PausableTask]
    unknown_fields: bytes = b""


class PauseFamily(ClusterFamily[TopicPaused, pb.TopicPaused, frozenset[PausableTask]]):
    """Defines the family of pauses."""

    event_type = TopicPaused
    kind = RecordKind.PAUSE
    field = "topic_paused"
    min_fold_version = 2
    row_prefix = b"pause"

    def to_message(self, event: TopicPaused) -> pb.TopicPaused:
        message = pb.TopicPaused(
            topic=event.topic,
            topic_id=event.topic_id.bytes,
            tasks=[task.name for task in sorted(event.tasks, key=lambda each: each.value)],
        )
        restore_unknown_fields(message, event.unknown_fields)
        return message

    def from_message(self, event_id: UUID, message: pb.TopicPaused) -> TopicPaused:
        tasks = (enum_from_number(PausableTask, number, "task") for number in message.tasks)
        return TopicPaused(
            event_id=event_id,
            topic=message.topic,
            topic_id=id_from_bytes(message.topic_id),
            tasks=frozenset(tasks),
            unknown_fields=unknown_fields(message),
        )

    def record_key(self, event: TopicPaused) -> RecordKey:
        return RecordKey(kind=self.kind, subject=event.topic_id.bytes)

    def topic_of(self, event: TopicPaused) -> str | None:
        return event.topic

    def value_of(self, event: TopicPaused, append_time_ms: int) -> frozenset[PausableTask]:
        return event.tasks


PAUSES = PauseFamily()


def paused_tasks(metadata: ClusterReader, topic_id: UUID) -> frozenset[PausableTask]:
    """Return the paused work of one topic id."""
    return metadata.cluster_value(PAUSES, topic_id.bytes) or frozenset()
