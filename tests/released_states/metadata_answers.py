"""Converts a metadata manager's answers to JSON with names of this module.

These names are not derived from the code, because names in code may change and kept files may not.
A later version may give more answers: `differences` compares only those of the earlier version.
A list may not get more items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any
from uuid import UUID

from rlmm.events.offload_segment import offload_segments
from rlmm.events.pause import paused_tasks
from rlmm.events.policy import PolicySetting, TopicPolicy, topic_policies, topic_policy_position
from rlmm.events.policy_level import PolicyLevel, policy_levels
from rlmm.events.registration import Registration, registrations
from rlmm.events.secret import cluster_secret
from rlmm.spi import RemoteLogMetadataManager, SegmentRecord
from rlmm.state.log_starts import LogStart
from rlmm.state.offload_segments import OffloadPosition, OffloadSegmentRecord
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition, id_from_text, id_to_text
from rsm.segment.metadata import SegmentState, StoredObject, Writer
from rsm.segment.ranges import OffsetRange

Json = dict[str, Any]
_ID_CHARACTERS = 22
Point = tuple[int, int]
"""A leader epoch and an offset to look up."""


def partition_text(tip: TopicIdPartition) -> str:
    """Name a partition with its topic's id."""
    return f"{tip.topic}-{id_to_text(tip.topic_id)}/{tip.partition}"


def partition_of(text: str) -> TopicIdPartition:
    """Read what `partition_text` wrote."""
    topic, _, number = text.partition("/")
    return TopicIdPartition(
        topic_id=id_from_text(topic[-_ID_CHARACTERS:]),
        topic=topic[: -_ID_CHARACTERS - 1],
        partition=int(number),
    )


def metadata_answers(
    metadata: RemoteLogMetadataManager, points: Mapping[TopicIdPartition, Iterable[Point]]
) -> Json:
    """Return all metadata of the cluster and of these partitions, looked up at these points."""
    identity = metadata.identity
    assert identity is not None, "the metadata is not ready"
    topics = sorted({(tip.topic, tip.topic_id) for tip in points})
    return {
        "topic": {
            "cluster_id": identity.cluster_id,
            "topic_id": identity.topic_id,
            "partition_count": identity.partition_count,
        },
        "broker_time_ms": metadata.broker_time_ms(),
        "policies": [
            _policy(metadata, policy)
            for policy in sorted(topic_policies(metadata), key=lambda each: each.topic)
        ],
        "policy_levels": [_level(each) for each in policy_levels(metadata)],
        "paused": {topic: _paused(metadata, topic_id) for topic, topic_id in topics},
        "cluster_secret_ids": _secret_ids(metadata),
        "registrations": [
            _registration(each)
            for each in sorted(registrations(metadata), key=lambda r: r.process.process_id)
        ],
        "partitions_of": {
            topic: [tip.partition for tip in metadata.partitions_of(topic_id, topic)]
            for topic, topic_id in topics
        },
        "partitions": {
            partition_text(tip): _partition(metadata, tip, asked) for tip, asked in points.items()
        },
    }


def interesting_points(metadata: RemoteLogMetadataManager, tip: TopicIdPartition) -> list[Point]:
    """Return each epoch, and an unknown one, with the offsets on both sides of each boundary."""
    state, records = metadata.partition_state(tip), _records(metadata, tip)
    lineages = [state.lineage, *(each.metadata.segment_leader_epochs for each in records)]
    entries = {entry for lineage in lineages for entry in lineage.entries}
    boundaries = {entry.start_offset for entry in entries}
    for offsets in (*(each.metadata.offsets for each in records), *(g.offsets for g in state.gaps)):
        boundaries |= {offsets.start_offset, offsets.end_offset}
    epochs = {entry.epoch for entry in entries} | {99}
    offsets_around = {each + step for each in boundaries for step in (-1, 0)}
    return [(e, o) for e in sorted(epochs) for o in sorted(offsets_around) if o >= 0]


def expected_points(expected: Json) -> dict[TopicIdPartition, list[Point]]:
    """Return the partitions and points of earlier answers."""
    return {
        partition_of(text): [(int(epoch), int(offset)) for epoch, offset in _split(answers)]
        for text, answers in expected["partitions"].items()
    }


def differences(expected: object, found: object, path: str = "") -> list[str]:
    """Return where `found` differs from the expected answers, apart from additional keys."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return [
            line
            for key, value in expected.items()
            for line in differences(value, found.get(key), f"{path}/{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            line
            for number, (value, other) in enumerate(zip(expected, found, strict=True))
            for line in differences(value, other, f"{path}/{number}")
        ]
    return [] if expected == found else [f"{path}: expected {expected!r}, found {found!r}"]


def _split(answers: Json) -> list[list[str]]:
    return [point.split("/") for point in answers["lookups"]]


def _partition(
    metadata: RemoteLogMetadataManager, tip: TopicIdPartition, points: Iterable[Point]
) -> Json:
    asked = list(points)
    epochs = sorted({epoch for epoch, _ in asked})
    newer = metadata.newer_record(tip)
    return {
        "state": _state(metadata.partition_state(tip)),
        "offload_segments": [_offload_segment(each) for each in offload_segments(metadata, tip)],
        "segments": [_segment(record) for record in _records(metadata, tip)],
        "listed": [str(r.metadata.segment_id.id) for r in metadata.list_remote_log_segments(tip)],
        "lookups": {f"{e}/{o}": _looked_up(metadata, tip, e, o) for e, o in asked},
        "next_with_transactions": {
            f"{epoch}/{offset}": _next_with_transactions(metadata, tip, epoch, offset)
            for epoch, offset in asked
        },
        "highest_offsets": {
            str(epoch): metadata.highest_offset_for_epoch(tip, epoch) for epoch in epochs
        },
        "size_bytes": {
            str(epoch): metadata.remote_log_size_bytes(tip, leader_epoch=epoch) for epoch in epochs
        }
        | {"all": metadata.remote_log_size_bytes(tip)},
        "earliest_offset": metadata.earliest_log_offset(tip),
        "needs_newer_version": newer is not None,
    }


def _records(metadata: RemoteLogMetadataManager, tip: TopicIdPartition) -> list[SegmentRecord]:
    return list(metadata.list_remote_log_segments(tip, states=tuple(SegmentState)))


def _looked_up(
    metadata: RemoteLogMetadataManager, tip: TopicIdPartition, epoch: int, offset: int
) -> str | None:
    found = metadata.remote_log_segment_metadata(tip, offset, leader_epoch=epoch)
    return None if found is None else str(found.segment_id.id)


def _next_with_transactions(
    metadata: RemoteLogMetadataManager, tip: TopicIdPartition, epoch: int, offset: int
) -> str | None:
    found = metadata.next_segment_with_txn_index(tip, epoch, offset)
    return None if found is None else str(found.segment_id.id)


def _state(state: PartitionState) -> Json:
    return {
        "owner": None if state.owner is None else _writer(state.owner),
        "lineage": _lineage(state.lineage),
        "log_start_offset": state.log_start_offset,
        "log_start_requested_offset": state.log_start_requested_offset,
        "trimmed_offset": state.trimmed_offset,
        "log_starts": _starts(state.log_starts),
        "log_start_requests": _starts(state.log_start_requests),
        "trims": _starts(state.trims),
        "read_leases": [
            {
                "id": str(each.lease_id),
                "offsets": _offsets(each.offsets),
                "expires_ms": each.expires_ms,
                "holder": each.holder,
            }
            for each in state.read_leases
        ],
        "gaps": [
            {
                "offsets": _offsets(each.offsets),
                "reason": each.reason.name,
                "recorded_ms": each.recorded_ms,
            }
            for each in state.gaps
        ],
        "offload_requested_offset": state.offload_requested_offset,
        "accepted_loss_epoch": state.accepted_loss_epoch,
        "accepted_start_offset": state.accepted_start_offset,
        "deletion": None if state.deletion is None else state.deletion.name,
    }


def _segment(record: SegmentRecord) -> Json:
    metadata = record.metadata
    return {
        "id": str(metadata.segment_id.id),
        "state": metadata.state.name,
        "offsets": _offsets(metadata.offsets),
        "leader_epochs": _lineage(metadata.segment_leader_epochs),
        "max_timestamp_ms": metadata.max_timestamp_ms,
        "size_bytes": metadata.segment_size_bytes,
        "event_timestamp_ms": metadata.event_timestamp_ms,
        "writer": _writer(metadata.writer),
        "layout": metadata.layout,
        "objects": [_object(each) for each in metadata.objects],
        "has_transaction_index": metadata.has_transaction_index,
        "custom_metadata": metadata.custom_metadata.hex(),
        "copy_deadline_ms": record.copy_deadline_ms,
        "changed_ms": record.changed_ms,
        "changed_at": None if record.changed_at is None else list(record.changed_at),
        "is_dead_lettered": record.is_dead_lettered,
    }


def _offload_segment(record: OffloadSegmentRecord) -> Json:
    return {
        "id": str(record.id),
        "status": record.status.name,
        "writer": _writer(record.writer),
        "assigned_ms": record.assigned_ms,
        "begin": _offload_position(record.begin),
        "segment_ids": [str(each) for each in record.segment_ids],
        "driver_metadata": {each.name: each.value for each in record.driver_metadata},
        "objects": list(record.objects),
        "offloaded_ms": record.offloaded_ms,
        "end": None if record.end is None else _offload_position(record.end),
    }


def _offload_position(position: OffloadPosition) -> list[int]:
    return [position.ledger_id, position.entry_id, position.offset]


def _object(stored: StoredObject) -> list[object]:
    return [stored.key, stored.length_bytes, checksum_text(stored.crc32c)]


def checksum_text(crc32c: int | None) -> str | None:
    """Return a CRC32C as text; None if none is recorded."""
    return None if crc32c is None else f"{crc32c:08x}"


def _policy(metadata: RemoteLogMetadataManager, policy: TopicPolicy) -> Json:
    position = topic_policy_position(metadata, policy.topic_id)
    return {
        "topic_id": str(policy.topic_id),
        "position": None if position is None else list(position),
        "topic": policy.topic,
        "state": policy.state.name,
        "retention_ms": policy.retention_ms,
        "retention_bytes": policy.retention_bytes,
        "local_retention_ms": policy.local_retention_ms,
        "local_retention_bytes": policy.local_retention_bytes,
        "copy_lag_ms": policy.copy_lag_ms,
        "copy_lag_bytes": policy.copy_lag_bytes,
        "delete_remote": policy.delete_remote,
        "outage_policy": policy.outage_policy.name,
        "copy_lag_since": policy.copy_lag_since.name,
        "local_deletion_lag_ms": policy.local_deletion_lag_ms,
        "offload_mode": None if policy.offload_mode is None else policy.offload_mode.name,
        "offload_segment_max_bytes": policy.offload_segment_max_bytes,
        "offload_segment_rollover_ms": policy.offload_segment_rollover_ms,
        "layout": policy.layout,
        "inherited": [each.name for each in PolicySetting if each in policy.inherited],
        "untiered_retention_ms": policy.untiered_retention_ms,
        "untiered_retention_bytes": policy.untiered_retention_bytes,
        "originals": {each.name: each.value for each in policy.originals},
    }


def _level(level: PolicyLevel) -> Json:
    values = {each.name: value for each, value in level.values.items()}
    names = {name: each.name for name, each in values.items() if isinstance(each, Enum)}
    return {"pattern": level.pattern, **values, **names}


def _paused(metadata: RemoteLogMetadataManager, topic_id: UUID) -> list[str]:
    return sorted(task.name for task in paused_tasks(metadata, topic_id))


def _secret_ids(metadata: RemoteLogMetadataManager) -> list[str | None]:
    """Return the ids of the current and the previous secret; empty if there is none."""
    secret = cluster_secret(metadata)
    if secret is None:
        return []
    pair = (secret.current, secret.previous)
    return [None if each is None else str(each.secret_id) for each in pair]


def _registration(registration: Registration) -> Json:
    process = registration.process
    return {
        "process_id": str(process.process_id),
        "role": process.role.name,
        "broker_id": process.broker_id,
        "http_address": process.http_address,
        "gateway_address": process.gateway_address,
        "heartbeat_interval_ms": process.heartbeat_interval_ms,
        "heartbeat_ms": registration.heartbeat_ms,
        "version": process.version,
        "applied": {str(each.partition): each.offset for each in process.applied},
        "boot_id": process.boot_id,
        "network_namespace": process.network_namespace,
        "broker_address": process.broker_address,
        "readiness": process.readiness.name,
        "unready_reasons": list(process.unready_reasons),
        "incarnation": None if process.incarnation is None else str(process.incarnation),
        "serves_https": process.serves_https,
        "file_defaults": {each.key: each.value for each in process.file_defaults},
    }


def _writer(writer: Writer) -> list[object]:
    return [writer.broker_id, writer.leader_epoch, str(writer.incarnation)]


def _lineage(lineage: Lineage) -> list[list[int]]:
    return [[each.epoch, each.start_offset] for each in lineage.entries]


def _starts(starts: Iterable[LogStart]) -> list[list[int]]:
    return [[each.offset, each.leader_epoch] for each in starts]


def _offsets(offsets: OffsetRange) -> list[int]:
    return [offsets.start_offset, offsets.end_offset]
