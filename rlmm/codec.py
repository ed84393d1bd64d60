"""Encodes events as records of the metadata topic, with keys, and decodes them. Pure.

Broken records raise CorruptError. Records that only a newer version can read (by their kind, event,
enum value or `min_fold_version`) raise UnsupportedError: they are skipped, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from google.protobuf.message import DecodeError

from rlmm import record_keys
from rlmm.events.anomaly import AnomalyReported
from rlmm.events.event_messages import DEAD_LETTERED_FIELD, event_from_message, event_to_message
from rlmm.events.processes import ProcessRegistered
from rlmm.events.secrets import ClusterSecretSet
from rlmm.events.values import (
    Event,
    GapsRecorded,
    LeadershipClaimed,
    LocalLogTrimmed,
    LogStartAdvanced,
    LogStartRequested,
    LossAccepted,
    OffloadRequested,
    ReadLeaseTaken,
    RemotePartitionDeleteMetadata,
    SegmentDeadLettered,
    SegmentEvent,
    TopicPaused,
    TopicPolicyChanged,
)
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind, parse_record_key
from rsm.segment.errors import CorruptError, UnsupportedError

FOLD_VERSION = 4
"""The newest fold rules that this version knows; a record that needs newer ones says so."""

SEGMENT_FIELD = "segment"
_EVENT_FIELDS: Mapping[RecordKind, tuple[str, ...]] = {
    RecordKind.SEGMENT: (SEGMENT_FIELD, DEAD_LETTERED_FIELD),
    RecordKind.CLAIM: ("leadership_claimed",),
    RecordKind.TRIM: ("local_log_trimmed",),
    RecordKind.LOG_START: ("log_start_advanced",),
    RecordKind.LOG_START_REQUEST: ("log_start_requested",),
    RecordKind.PARTITION_DELETE: ("partition_delete",),
    RecordKind.READ_LEASE: ("read_lease_taken",),
    RecordKind.GAPS: ("gaps_recorded",),
    RecordKind.OFFLOAD_REQUEST: ("offload_requested",),
    RecordKind.LOSS_ACCEPTED: ("loss_accepted",),
    RecordKind.ANOMALY: ("anomaly_reported",),
    RecordKind.POLICY: ("topic_policy_changed",),
    RecordKind.REGISTRATION: ("process_registered",),
    RecordKind.PAUSE: ("topic_paused",),
    RecordKind.CLUSTER_SECRET: ("cluster_secret_set",),
}

_PARTITION_KINDS: Mapping[type[Event], RecordKind] = {
    LeadershipClaimed: RecordKind.CLAIM,
    LocalLogTrimmed: RecordKind.TRIM,
    LogStartAdvanced: RecordKind.LOG_START,
    LogStartRequested: RecordKind.LOG_START_REQUEST,
    RemotePartitionDeleteMetadata: RecordKind.PARTITION_DELETE,
    GapsRecorded: RecordKind.GAPS,
    OffloadRequested: RecordKind.OFFLOAD_REQUEST,
    LossAccepted: RecordKind.LOSS_ACCEPTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecord:
    """A record's key and value as bytes."""

    key: bytes
    value: bytes


def encode(event: Event) -> EncodedRecord:
    """Encode an event as a record."""
    message = event_to_message(event)
    return EncodedRecord(key=record_key(event), value=message.SerializeToString())


def decode(key: bytes, value: bytes) -> Event:
    """Decode a record that is not a tombstone. Raises CorruptError or UnsupportedError."""
    kind = parse_record_key(key).kind
    message = _parse_envelope(kind, value)
    event = event_from_message(kind, message)
    if record_key(event) != key:
        raise CorruptError("a record whose key is not its value's", kind=kind.name)
    return event


def record_key(event: Event) -> bytes:  # noqa: PLR0911 - one key for each kind
    """Return the key that an event's record has."""
    event_id = event.event_id
    match event:
        case SegmentEvent():
            return record_keys.segment_key(event.metadata.segment_id, event_id)
        case SegmentDeadLettered():
            return record_keys.segment_key(event.segment_id, event_id)
        case TopicPolicyChanged():
            return record_keys.policy_key(event.policy.topic_id)
        case ProcessRegistered():
            return record_keys.registration_key(event.process_id)
        case TopicPaused():
            return record_keys.pause_key(event.topic_id)
        case ClusterSecretSet():
            return record_keys.cluster_secret_key()
        case ReadLeaseTaken():
            kind = RecordKind.READ_LEASE
            return record_keys.partition_key(kind, event.topic_id_partition, event.lease_id)
        case AnomalyReported():
            kind = RecordKind.ANOMALY
            return record_keys.partition_key(kind, event.topic_id_partition, event.anomaly.id)
        case _:
            kind = _PARTITION_KINDS[type(event)]
            return record_keys.partition_key(kind, event.topic_id_partition, event_id)


def needed_fold_version(value: bytes) -> int:
    """Return the fold version that a record's value needs; 0 if the value is not readable."""
    try:
        return pb.MetadataEvent.FromString(value).min_fold_version
    except DecodeError:
        return 0


def parse_value(value: bytes) -> pb.MetadataEvent:
    """Parse a record's value as a message, without checking its content. CorruptError."""
    try:
        return pb.MetadataEvent.FromString(value)
    except DecodeError as error:
        raise CorruptError("not a metadata event", length_bytes=len(value)) from error


def _parse_envelope(kind: RecordKind, value: bytes) -> pb.MetadataEvent:
    message = parse_value(value)
    if message.min_fold_version > FOLD_VERSION:
        raise UnsupportedError("a record of a newer version", needs=message.min_fold_version)
    found = message.WhichOneof("event")
    if found not in _EVENT_FIELDS[kind]:
        _reject_event_field(kind, found)
    return message


def _reject_event_field(kind: RecordKind, found: str | None) -> NoReturn:
    if found is None:
        raise UnsupportedError("a record without an event that is known here", kind=kind.name)
    raise CorruptError("a record whose key is not its value's", kind=kind.name, event=found)
