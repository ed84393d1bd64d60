"""Every later version reads what topics have already: the published format never changes.

`published_schema.txt` lists each field and each enum value there is, `published_records.txt` one
record of each kind as it was written. Add new parts of the schema there; never change or remove a
line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from rlmm.codec import decode
from rlmm.events.event import Event
from rlmm.events.parsed_segment import ParsedSegment
from rlmm.events.pause import PausableTask
from rlmm.events.policy import CopyLagSince, OriginalConfig, OutagePolicy, PolicySetting
from rlmm.events.policy_level import PolicyLevel, PolicyLevelSet
from rlmm.events.registration import AppliedPosition, FileDefault, ProcessReadiness
from rlmm.fold import parse_record
from rlmm.proto import dead_letter_pb2, events_pb2
from rlmm.record_keys import RecordKind, parse_record_key
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.gaps import GapReason
from rlmm.state.offload_segments import OffloadSegmentStatus
from rsm.segment.metadata import StoredObject
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.proto import segment_pb2
from rsm.segment.ranges import OffsetRange
from tests import metadata_builder as build

_SCHEMA = Path(__file__).with_name("published_schema.txt")
_RECORDS = Path(__file__).with_name("published_records.txt")
_TYPES = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}
_SEGMENT = replace(
    build.segment_metadata(7, 100, 200, epochs=((3, 100), (5, 150)), by=build.writer(5)),
    objects=(StoredObject(key="a.log", length_bytes=4_096, crc32c=9), StoredObject(key="a.meta")),
    has_transaction_index=True,
    custom_metadata=b"custom",
)
_CHUNKED = replace(
    _SEGMENT,
    layout="chunked",
    objects=(
        StoredObject(key="a.log.00000", length_bytes=4_096, crc32c=9),
        StoredObject(key="a.log.00001"),
        StoredObject(key="a.meta"),
    ),
)
_POLICY = replace(
    build.policy().policy,
    local_retention_ms=1,
    local_retention_bytes=2,
    originals=(OriginalConfig(name="a", value=None), OriginalConfig(name="b", value="1")),
    delete_remote=True,
    copy_lag_ms=3,
    copy_lag_bytes=-1,
    outage_policy=OutagePolicy.SHED_OLDEST,
)
_EVENTS: dict[str, Event] = {
    "copy_started": build.step(_SEGMENT, build.STARTED, copy_timeout_ms=60_000),
    "open_copy_started": build.step(
        build.open_segment_metadata(7, 100, epochs=((3, 100),), by=build.writer(5)),
        build.STARTED,
        copy_timeout_ms=60_000,
    ),
    "copy_finished": build.step(_SEGMENT, build.FINISHED, copy_deadline_ms=70_000),
    "chunked_copy_started": build.step(_CHUNKED, build.STARTED, copy_timeout_ms=60_000),
    "delete_started": build.step(
        _SEGMENT, build.DELETE_STARTED, by=build.writer(6), expected_state=build.FINISHED
    ),
    "delete_finished": build.step(_SEGMENT, build.DELETE_FINISHED),
    "dead_lettered": build.dead_lettered(_SEGMENT),
    "claim": build.claim(build.writer(5), lineage=_SEGMENT.segment_leader_epochs),
    "trim": build.trim(200, by=build.writer(5), lineage=_SEGMENT.segment_leader_epochs),
    "log_start": build.log_start(150, by=build.writer(5)),
    "log_start_request": build.log_start_request(160),
    "partition_delete": build.partition_delete(build.DELETING),
    "read_lease": build.read_lease(3, 100, 200),
    "gaps": build.gaps(build.gap(0, 10), build.gap(20, 30, reason=GapReason.EXTERNAL_START)),
    "gap_of_accepted_loss": build.gaps(build.gap(0, 10, reason=GapReason.ACCEPTED_LOSS)),
    "loss_accepted": build.loss_accepted(4, 120),
    "anomaly_reported": build.anomaly_reported(),
    "loss_of_segment_accepted": build.anomaly_reported(
        replace(
            build.anomaly(kind=AnomalyKind.LOSS_ACCEPTED),
            lost=(OffsetRange(start_offset=3, end_offset=7),),
        )
    ),
    "offload_request": build.offload_request(170),
    "paused": build.paused(PausableTask.COPY),
    "offload_segment_assigned": build.offload_segment_changed(),
    "offload_segment_offloaded": build.offload_segment_changed(
        build.offload_segment(1, OffloadSegmentStatus.OFFLOADED)
    ),
    "offload_segment_with_objects": build.offload_segment_changed(
        replace(build.offload_segment(), objects=("a.log.{00000..00012}", "a.meta"))
    ),
    "policy": replace(build.policy(), policy=_POLICY),
    "policy_of_streaming": replace(
        build.policy(),
        policy=replace(
            _POLICY,
            offload_mode=OffloadMode.STREAM,
            offload_segment_max_bytes=1 << 30,
            offload_segment_rollover_ms=600_000,
        ),
    ),
    "policy_that_inherits": replace(
        build.policy(),
        policy=replace(
            _POLICY,
            inherited=frozenset({PolicySetting.RETENTION_MS, PolicySetting.OFFLOAD_MODE}),
            untiered_retention_ms=7,
            untiered_retention_bytes=-1,
        ),
    ),
    "policy_with_layout": replace(
        build.policy(), policy=replace(_POLICY, layout="rlm_example.layout:LabelledLayout")
    ),
    "policy_level_with_layout": PolicyLevelSet(
        event_id=UUID(int=0xE7), level=PolicyLevel(pattern="orders-*", layout="block_v2")
    ),
    "policy_level": PolicyLevelSet(
        event_id=UUID(int=0xE7),
        level=PolicyLevel(
            pattern="orders-*",
            retention_ms=1,
            retention_bytes=-1,
            local_retention_ms=0,
            local_retention_bytes=-2,
            copy_lag_ms=2,
            copy_lag_bytes=-1,
            copy_lag_since=CopyLagSince.ROLL,
            outage_policy=OutagePolicy.HOLD,
            local_deletion_lag_ms=3,
            offload_mode=OffloadMode.STREAM,
            offload_segment_max_bytes=1 << 30,
            offload_segment_rollover_ms=600_000,
        ),
    ),
    "default_policy_level": build.policy_level(""),
    "cluster_secret": build.cluster_secret(1, previous=2),
    "registration": replace(
        build.registration(),
        gateway_address="10.0.0.1:9192",
        applied=(AppliedPosition(partition=1, offset=2),),
    ),
    "registration_with_file_defaults": replace(
        build.registration(),
        file_defaults=(
            FileDefault(key="offload.mode", value="stream"),
            FileDefault(key="log.retention.ms", value=None),
        ),
    ),
    "registration_with_host": replace(
        build.registration(),
        boot_id="b-1",
        network_namespace="net:[1]",
        broker_address="10.0.0.1:9092",
        readiness=ProcessReadiness.NOT_READY,
        unready_reasons=("store cannot be reached",),
    ),
}


def _published_records() -> dict[str, tuple[bytes, bytes]]:
    lines = (line.split() for line in _RECORDS.read_text().splitlines())
    return {name: (bytes.fromhex(key), bytes.fromhex(value)) for name, key, value in lines}


def _fields(message: Descriptor) -> Iterator[str]:
    for field in message.fields:
        part = field.message_type or field.enum_type
        of = part.full_name if part else _TYPES[field.type]
        many = "repeated " if field.is_repeated else ""
        yield f"{message.full_name}.{field.name} = {field.number}: {many}{of}"


def _values(enum: EnumDescriptor) -> Iterator[str]:
    return (f"{enum.full_name}.{value.name} = {value.number}" for value in enum.values)


def _schema() -> set[str]:
    lines: set[str] = set()
    for module in (segment_pb2, events_pb2, dead_letter_pb2):
        for message in module.DESCRIPTOR.message_types_by_name.values():
            lines.update(_fields(message))
        for enum in module.DESCRIPTOR.enum_types_by_name.values():
            lines.update(_values(enum))
    return lines


def test_schema_when_compared_with_what_was_published_then_has_all_of_it_unchanged() -> None:
    """Scenario 102, R14: fields and values are only added."""
    assert sorted(_schema()) == _SCHEMA.read_text().splitlines()


@pytest.mark.parametrize("name", _EVENTS)
def test_record_when_an_earlier_version_wrote_it_then_says_the_same(name: str) -> None:
    """Scenario 102: metadata that a previous version wrote is readable."""
    key, value = _published_records()[name]

    found = decode(key, value)

    assert found == replace(_EVENTS[name], event_id=UUID(int=0xE7))


def test_gap_of_an_accepted_loss_when_read_by_the_first_version_then_of_a_reason_it_knows() -> None:
    """R14: the first version's gateways skip the gap, too, and its leaders keep the field."""
    _, value = _published_records()["gap_of_accepted_loss"]

    (gap,) = events_pb2.MetadataEvent.FromString(value).gaps_recorded.gaps

    assert (gap.reason, gap.accepted_loss) == (events_pb2.EXTERNAL_START, True)


def test_records_when_published_then_are_of_every_kind_and_folded() -> None:
    """Scenario 102: the fold accepts all of them, segments by its fast path."""
    records = _published_records()

    steps = {name: parse_record(*record) for name, record in records.items()}

    assert {parse_record_key(key).kind for key, _ in records.values()} == set(RecordKind)
    assert {name for name, step in steps.items() if isinstance(step, ParsedSegment)} == {
        *("copy_started", "open_copy_started", "copy_finished", "chunked_copy_started"),
        *("delete_started", "delete_finished"),
    }
