"""Defines the family of an event: the code for one kind of event. Pure.

The module of a family defines the event's value, protobuf message, key and fold rule. It also
defines the superseded records, the cached form, and the functions that read it. Other
modules find families in the registry (rlmm/events/registry.py) instead of naming events.
rlmm/fold.py lists the rules.

Each event has a unique id. If acceptance depends on order, as for segments, claims, trims and
requests, a record's key ends with that id. So no record replaces another, and compaction cannot
remove an accepted record in favor of a refused one. The owner writes tombstones for superseded
records. Families that reuse keys, such as policies, registrations and read leases, have one key for
each topic id, process or lease. The last record of a key wins, and compaction removes the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from uuid import UUID

from google.protobuf.message import Message

from rlmm.events.event import Event, parse_value
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.rows import KnownRecords
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind, partition_subject
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import Writer
from rsm.segment.metadata_codec import id_from_bytes

_TIME = Struct(">q")

PARTITION_DELETED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED

StateOf = Callable[[TopicIdPartition], PartitionState]
"""Returns a partition's current state."""


class AnyEvent(Protocol):
    """Represents an event of any family."""

    @property
    def event_id(self) -> UUID: ...


class PartitionEvent(AnyEvent, Protocol):
    """Represents an event about one partition as a whole."""

    @property
    def topic_id_partition(self) -> TopicIdPartition: ...


class OwnerEvent(PartitionEvent, Protocol):
    """Represents a decision of a partition's owner."""

    @property
    def writer(self) -> Writer: ...


E = TypeVar("E", bound=AnyEvent)
M = TypeVar("M", bound=Message)
S = TypeVar("S")
P = TypeVar("P", bound=PartitionEvent)
W = TypeVar("W", bound=OwnerEvent)
C = TypeVar("C", bound=Event)
V = TypeVar("V")


class EventFamily(ABC, Generic[E, M, S]):
    """Represents the rules of the event E, which the message M encodes. Stateless.

    S is the part of a record that the fold reads: the event, or only some of its fields if building
    the whole event would take too long.
    """

    event_type: ClassVar[type[Event]]
    kind: ClassVar[RecordKind]
    field: ClassVar[str]
    """The event's field in MetadataEvent (rlmm/proto/events.proto)."""

    min_fold_version: ClassVar[int] = 1
    """The oldest version of the fold rules that knows the event; older ones skip its records."""

    reuses_keys: ClassVar[bool] = False
    """Whether a later record may have the same key, and so replace the earlier one."""

    def needed_fold_version(self, message: M) -> int:
        """Return the oldest version of the fold rules that knows all fields of this event."""
        return self.min_fold_version

    @abstractmethod
    def to_message(self, event: E) -> M:
        """Encode an event, without its id."""

    @abstractmethod
    def from_message(self, event_id: UUID, message: M) -> E:
        """Decode an event.

        Raises CorruptError if a value is invalid, UnsupportedError if only a newer version knows
        it.
        """

    @abstractmethod
    def record_key(self, event: E) -> RecordKey:
        """Return the key that an event's record has."""

    def to_value(self, event: E) -> bytes:
        """Encode an event as the value of its record."""
        content = self.to_message(event)
        message = pb.MetadataEvent(
            min_fold_version=self.needed_fold_version(content), event_id=event.event_id.bytes
        )
        getattr(message, self.field).CopyFrom(content)
        return message.SerializeToString()

    def from_value(self, key: RecordKey, message: pb.MetadataEvent) -> E:
        """Decode a record's value that contains an event of this family.

        Raises the errors of `from_message`, and CorruptError if the key does not match.
        """
        event_id = id_from_bytes(message.event_id)
        event = self.from_message(event_id, getattr(message, self.field))
        if self.record_key(event) != key:
            raise CorruptError(
                "the record is invalid: its key does not match its value", kind=key.kind.name
            )
        return event

    @abstractmethod
    def partition_of(self, event: E) -> TopicIdPartition | None:
        """Return the partition that an event is about; None if it is about no single partition."""

    @abstractmethod
    def topic_of(self, event: E) -> str | None:
        """Return the name of an event's user topic; None if the event has no topic."""

    @abstractmethod
    def fold(self, state: FoldState, parsed: S, record: TopicRecord) -> Refusal | None:
        """Apply a record to the state; return the reason for a refusal, None if it is accepted."""

    @abstractmethod
    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        """Apply a record's removal; return the reason for a refusal, None if it is accepted."""

    def require_room(self, event: E, state_of: StateOf, broker_time_ms: int) -> None:
        """Raise RetriableError if the partition has the maximum number of these records."""

    def superseded_kinds(self, event: E, state_of: StateOf) -> tuple[RecordKind, ...] | None:
        """Return the kinds whose earlier records an accepted event makes superfluous.

        None means that the event's writer removes nothing, not even expired records. The caller
        keeps records after the event, because they may be newer.
        """
        return None


class PartitionFamily(EventFamily[P, M, P]):
    """Represents the family of an event about a partition; any process may write the event.

    The state keeps the key of each record, even of a refused one, so that the record can be
    removed.
    """

    @abstractmethod
    def rule(
        self, before: PartitionState, event: P, record: TopicRecord
    ) -> PartitionState | Refusal:
        """Return the partition's next state, or the reason for a refusal."""

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        """Write to the cache's message the part of a partition's state that these events change.

        Leave fields with their default values absent, so that they take no bytes.
        """

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        """Read this part into fields of PartitionState; omit absent fields.

        Raises CorruptError.
        """

    def expired_ids(self, state: PartitionState, broker_time_ms: int) -> Iterable[UUID]:
        """Return the ids of expired records, which no longer have an effect and can be removed."""
        return ()

    def keys_ending_with(
        self, segment_id: RemoteLogSegmentId, records: KnownRecords
    ) -> Iterable[RecordKey]:
        """Return the keys of records to remove together with a deleted segment's records."""
        return ()

    def key_id(self, event: P) -> UUID:
        """Return the id at the end of the key: the event's id, or the id in a reused key."""
        return event.event_id

    def record_key(self, event: P) -> RecordKey:
        subject = partition_subject(event.topic_id_partition)
        return RecordKey(kind=self.kind, subject=subject, event_id=self.key_id(event).bytes)

    def partition_of(self, event: P) -> TopicIdPartition | None:
        return event.topic_id_partition

    def topic_of(self, event: P) -> str | None:
        return event.topic_id_partition.topic

    def fold(self, state: FoldState, parsed: P, record: TopicRecord) -> Refusal | None:
        key = self.record_key(parsed)
        state.put_record_key(key, record.offset)
        refusal = self.writer_refusal(state, key.subject, parsed)
        if refusal is not None:
            return refusal
        outcome = self.rule(state.partition_state(key.subject), parsed, record)
        if isinstance(outcome, Refusal):
            return outcome
        state.put_partition(key.subject, outcome)
        return None

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        state.put_record_key(key, None)
        return None

    def writer_refusal(self, state: FoldState, subject: bytes, event: P) -> Refusal | None:
        """Return why the event's writer may not write it now; None if it may."""
        is_deleted = state.partition_deletion(subject) is PARTITION_DELETED
        return Refusal.PARTITION_DELETED if is_deleted else None


class OwnerFamily(PartitionFamily[W, M]):
    """Represents the family of a decision that only a partition's owner may write.

    A deleted partition has no owner.
    """

    def writer_refusal(self, state: FoldState, subject: bytes, event: W) -> Refusal | None:
        is_owner = state.partition_state(subject).owner == event.writer
        return None if is_owner else Refusal.NOT_OWNER


class ClusterFamily(EventFamily[C, M, C], Generic[C, M, V]):
    """Represents the family of an event about a topic id, a process or the cluster.

    Any process may write the event. The state keeps the last record of each key as a row, which
    decodes to V (ClusterRows).
    """

    reuses_keys = True

    row_prefix: ClassVar[bytes]
    """The prefix of the rows' keys, before the subject. No other prefix begins with it."""

    has_row_time: ClassVar[bool] = False
    """Whether a row begins with the LogAppendTime of its record."""

    @abstractmethod
    def value_of(self, event: C, append_time_ms: int) -> V:
        """Return the value for a row's readers; `append_time_ms` is 0 if the row has no time."""

    def from_row(self, subject: bytes, row: bytes) -> V:
        """Decode the value of a row. Raises CorruptError."""
        append_time_ms = 0
        if self.has_row_time:
            (append_time_ms,) = _TIME.unpack_from(row)
            row = row[_TIME.size :]
        message = parse_value(row)
        if message.WhichOneof("event") != self.field:
            raise CorruptError(
                "cannot read a row of the cache: it contains an event of another family",
                kind=self.kind.name,
            )
        event = self.from_value(RecordKey(kind=self.kind, subject=subject), message)
        return self.value_of(event, append_time_ms)

    def partition_of(self, event: C) -> TopicIdPartition | None:
        return None

    def topic_of(self, event: C) -> str | None:
        return None

    def fold(self, state: FoldState, parsed: C, record: TopicRecord) -> Refusal | None:
        row = self.to_value(parsed)
        if self.has_row_time:
            row = _TIME.pack(record.append_time_ms) + row
        state.put_cluster_row(self.row_prefix + self.record_key(parsed).subject, row)
        return None

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        state.put_cluster_row(self.row_prefix + key.subject, None)
        return None


def checked_offset(offset: int) -> int:
    """Return the offset. Raises CorruptError if it is negative."""
    if offset < 0:
        raise CorruptError("cannot read a metadata record: an offset is negative", offset=offset)
    return offset
