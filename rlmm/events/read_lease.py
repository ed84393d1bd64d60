"""Defines a job's lease on stored data. Pure."""

from __future__ import annotations

from collections.abc import Iterable
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
from rlmm.state.partition_state import PartitionState, ReadLease
from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata_codec import (
    id_from_bytes,
    partition_from_message,
    partition_to_message,
)
from rsm.segment.ranges import OffsetRange

READ_LEASE_MAX_MS = 24 * 3600 * 1000
READ_LEASES_MAX_COUNT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLeaseTaken(Event):
    """Represents the lease of a job that reads the objects of `offsets` for `duration_ms`.

    Any process may write it, without fencing. The lease begins at the record's LogAppendTime and
    lasts at most READ_LEASE_MAX_MS. The last record of a lease's id wins, so a job renews its lease
    by taking it again. The lease blocks only expiry and deletions that have not yet begun. To lease
    a topic, a job takes one lease on each partition. `holder` describes the job for people.
    """

    lease_id: UUID
    topic_id_partition: TopicIdPartition
    offsets: OffsetRange
    duration_ms: int
    holder: str

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"a read lease is invalid: it has no offsets: {self.offsets}")
        if not 0 < self.duration_ms <= READ_LEASE_MAX_MS:
            raise ValueError(
                f"a read lease cannot last {self.duration_ms} ms: "
                f"it must last 1 to {READ_LEASE_MAX_MS} ms"
            )


class ReadLeaseFamily(PartitionFamily[ReadLeaseTaken, pb.ReadLeaseTaken]):
    """Defines the family of read leases; each record replaces the previous one of its id."""

    event_type = ReadLeaseTaken
    kind = RecordKind.READ_LEASE
    field = "read_lease_taken"
    reuses_keys = True

    def to_message(self, event: ReadLeaseTaken) -> pb.ReadLeaseTaken:
        return pb.ReadLeaseTaken(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            lease_id=event.lease_id.bytes,
            start_offset=event.offsets.start_offset,
            end_offset=event.offsets.end_offset,
            duration_ms=event.duration_ms,
            holder=event.holder,
        )

    def from_message(self, event_id: UUID, message: pb.ReadLeaseTaken) -> ReadLeaseTaken:
        try:
            return ReadLeaseTaken(
                event_id=event_id,
                lease_id=id_from_bytes(message.lease_id),
                topic_id_partition=partition_from_message(message.topic_id_partition),
                offsets=OffsetRange(
                    start_offset=message.start_offset, end_offset=message.end_offset
                ),
                duration_ms=message.duration_ms,
                holder=message.holder,
            )
        except ValueError as error:
            raise CorruptError("cannot read a read lease", reason=str(error)) from error

    def key_id(self, event: ReadLeaseTaken) -> UUID:
        return event.lease_id

    def rule(
        self, before: PartitionState, event: ReadLeaseTaken, record: TopicRecord
    ) -> PartitionState | Refusal:
        lease = ReadLease(
            lease_id=event.lease_id,
            offsets=event.offsets,
            expires_ms=record.append_time_ms + event.duration_ms,
            holder=event.holder,
        )
        others = _without(before.read_leases, event.lease_id)
        leases = sorted((*others, lease), key=lambda each: each.lease_id)
        return replace(before, read_leases=tuple(leases))

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        for lease in state.read_leases:
            message.read_leases.add(
                lease_id=lease.lease_id.bytes,
                start_offset=lease.offsets.start_offset,
                end_offset=lease.offsets.end_offset,
                expires_ms=lease.expires_ms,
                holder=lease.holder,
            )

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.read_leases:
            fields["read_leases"] = tuple(map(_lease_of, message.read_leases))

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        """End the lease."""
        before = state.partition_state(key.subject)
        left = _without(before.read_leases, UUID(bytes=key.event_id))
        state.put_partition(key.subject, replace(before, read_leases=left))
        return super().fold_tombstone(state, key)

    def require_room(self, event: ReadLeaseTaken, state_of: StateOf, broker_time_ms: int) -> None:
        """Raise RetriableError if the partition has the maximum number of other active leases."""
        active = state_of(event.topic_id_partition).active_leases(broker_time_ms)
        if len(_without(active, event.lease_id)) >= READ_LEASES_MAX_COUNT:
            raise RetriableError(
                "cannot take a read lease: the partition has the maximum number of leases",
                partition=event.topic_id_partition,
                limit=READ_LEASES_MAX_COUNT,
            )

    def expired_ids(self, state: PartitionState, broker_time_ms: int) -> Iterable[UUID]:
        """Return the ids of leases that expired at least READ_LEASE_MAX_MS ago.

        The brokers' clocks differ by less than this.
        """
        before_ms = broker_time_ms - READ_LEASE_MAX_MS
        return [each.lease_id for each in state.read_leases if each.expires_ms <= before_ms]

    def superseded_kinds(
        self, event: ReadLeaseTaken, state_of: StateOf
    ) -> tuple[RecordKind, ...] | None:
        return ()


def release_read_lease(
    metadata: RecordRemover, topic_id_partition: TopicIdPartition, lease_id: UUID
) -> None:
    """Write the tombstone of a lease, which ends it; has no effect if the lease is unknown.

    **Data loss:** a job that still runs may find its data deleted, unless it takes the lease again.
    So call this only for this process's own lease, or on an operator's request.
    """
    subject = partition_subject(topic_id_partition)
    metadata.remove_record(
        RecordKey(kind=ReadLeaseFamily.kind, subject=subject, event_id=lease_id.bytes)
    )


def _without(leases: tuple[ReadLease, ...], lease_id: UUID) -> tuple[ReadLease, ...]:
    return tuple(lease for lease in leases if lease.lease_id != lease_id)


def _lease_of(message: cache.ReadLease) -> ReadLease:
    return ReadLease(
        lease_id=id_from_bytes(message.lease_id),
        offsets=OffsetRange(start_offset=message.start_offset, end_offset=message.end_offset),
        expires_ms=message.expires_ms,
        holder=message.holder,
    )
