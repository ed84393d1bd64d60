"""Defines the report that a stored object is missing or corrupt. Pure.

Gateways, managers, `rlm read` and `rlm topic resolve` write these records, without fencing. So a
record proves nothing: it blocks trims, and it makes the leader's manager check the object. Only
that manager's own check can lead to another copy or to a deletion. The last record of a segment,
object and kind wins, and its tombstone clears the anomaly. When an operator accepts the loss of an
object, `rlm topic resolve` writes a record of the kind LOSS_ACCEPTED.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import PartitionFamily, StateOf
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.rows import RecordRemover
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind, partition_subject
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.partition_state import PartitionState
from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata_codec import (
    enum_from_number,
    id_from_bytes,
    partition_from_message,
    partition_to_message,
)
from rsm.segment.ranges import OffsetRange

ANOMALIES_MAX_COUNT = 256
"""The maximum number of open anomalies of one partition.

More can be recorded after earlier ones are cleared. Accepted losses count separately, with the same
limit.
"""

FOLDED_ANOMALIES_MAX_COUNT = 4 * ANOMALIES_MAX_COUNT
"""The maximum number of anomalies that a fold keeps for one partition.

Accepted losses count separately. Writers stop at ANOMALIES_MAX_COUNT; concurrent writers can
exceed it slightly. So only a writer that ignores that limit reaches the limit of the fold.
"""


class NoAnomalyRoomError(RetriableError):
    """Represents a refused write: the partition has the maximum number of anomalies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyReported(Event):
    """Represents an object of a segment that is missing, corrupt or given up."""

    topic_id_partition: TopicIdPartition
    anomaly: Anomaly


class AnomalyFamily(PartitionFamily[AnomalyReported, pb.AnomalyReported]):
    """Defines the family of anomalies: each record replaces the previous record of its id.

    Above the limit of the fold, compaction affects which anomalies are kept. This is harmless: no
    other rule reads anomalies, the owner checks the objects itself, and readers find an unrecorded
    fault again.
    """

    event_type = AnomalyReported
    kind = RecordKind.ANOMALY
    field = "anomaly_reported"
    reuses_keys = True

    def to_message(self, event: AnomalyReported) -> pb.AnomalyReported:
        return pb.AnomalyReported(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            anomaly=_to_message(event.anomaly),
        )

    def from_message(self, event_id: UUID, message: pb.AnomalyReported) -> AnomalyReported:
        return AnomalyReported(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            anomaly=_from_message(message.anomaly),
        )

    def key_id(self, event: AnomalyReported) -> UUID:
        return event.anomaly.id

    def rule(
        self, before: PartitionState, event: AnomalyReported, record: TopicRecord
    ) -> PartitionState | Refusal:
        anomaly, anomaly_id, known = event.anomaly, event.anomaly.id, before.anomalies
        index = _index(known, anomaly_id)
        is_known = index < len(known) and known[index].id == anomaly_id
        if not is_known and _count_alike(known, anomaly.kind) >= FOLDED_ANOMALIES_MAX_COUNT:
            return Refusal.TOO_MANY
        return replace(before, anomalies=(*known[:index], anomaly, *known[index + is_known :]))

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        message.anomalies.extend(map(_to_message, state.anomalies))

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.anomalies:
            fields["anomalies"] = tuple(map(_from_message, message.anomalies))

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        """Clear the anomaly."""
        before = state.partition_state(key.subject)
        left = _without(before.anomalies, UUID(bytes=key.event_id))
        state.put_partition(key.subject, replace(before, anomalies=left))
        return super().fold_tombstone(state, key)

    def require_room(self, event: AnomalyReported, state_of: StateOf, broker_time_ms: int) -> None:
        """Raise NoAnomalyRoomError if the partition has the maximum number of other anomalies."""
        partition, anomaly = event.topic_id_partition, event.anomaly
        others = _without(state_of(partition).anomalies, anomaly.id)
        if _count_alike(others, anomaly.kind) >= ANOMALIES_MAX_COUNT:
            raise NoAnomalyRoomError(
                "cannot record another anomaly: the partition has the maximum number of anomalies",
                partition=partition,
                limit=ANOMALIES_MAX_COUNT,
            )


def clear_anomaly(
    metadata: RecordRemover, topic_id_partition: TopicIdPartition, anomaly_id: UUID
) -> None:
    """Write the tombstone of an anomaly; do not wait until it is applied.

    Any process may call this, but only after a successful read or check of the object. Has no
    effect if the anomaly is unknown.
    """
    subject = partition_subject(topic_id_partition)
    metadata.remove_record(
        RecordKey(kind=AnomalyFamily.kind, subject=subject, event_id=anomaly_id.bytes)
    )


def _index(anomalies: Sequence[Anomaly], anomaly_id: UUID) -> int:
    """Return the index where an id is, or belongs, in `anomalies`, which are sorted by id."""
    # A binary search: each id that it compares costs a hash.
    return bisect_left(anomalies, anomaly_id, key=lambda each: each.id)


def _without(anomalies: tuple[Anomaly, ...], anomaly_id: UUID) -> tuple[Anomaly, ...]:
    index = _index(anomalies, anomaly_id)
    if index == len(anomalies) or anomalies[index].id != anomaly_id:
        return anomalies
    return (*anomalies[:index], *anomalies[index + 1 :])


def _count_alike(anomalies: Sequence[Anomaly], kind: AnomalyKind) -> int:
    """Count the anomalies that share a limit: accepted losses, or all others."""
    is_accepted = kind is AnomalyKind.LOSS_ACCEPTED
    return sum((each.kind is AnomalyKind.LOSS_ACCEPTED) is is_accepted for each in anomalies)


def _to_message(anomaly: Anomaly) -> pb.Anomaly:
    return pb.Anomaly(
        segment_id=anomaly.segment.bytes,
        object_key=anomaly.object_key,
        kind=anomaly.kind.name,
        first_ms=anomaly.first_ms,
        last_ms=anomaly.last_ms,
        attempts=anomaly.attempts,
        lost=[
            pb.LostOffsets(start_offset=each.start_offset, end_offset=each.end_offset)
            for each in anomaly.lost
        ],
    )


def _from_message(message: pb.Anomaly) -> Anomaly:
    """Decode an anomaly. Raises CorruptError, UnsupportedError."""
    kind = enum_from_number(AnomalyKind, message.kind, "kind of an anomaly")
    try:
        return Anomaly(
            segment=id_from_bytes(message.segment_id),
            object_key=message.object_key,
            kind=kind,
            first_ms=message.first_ms,
            last_ms=message.last_ms,
            attempts=message.attempts,
            lost=tuple(
                OffsetRange(start_offset=each.start_offset, end_offset=each.end_offset)
                for each in message.lost
            ),
        )
    except ValueError as error:
        raise CorruptError("cannot read an anomaly", reason=str(error)) from error
