"""docs/json.md is up to date, and the commands print what it describes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from uuid import UUID

import pytest

from rlm.cli.events.dlq import DeadLetterRow, dead_letters_json
from rlm.cli.events.metadata_lines import consumed_document, native_finding_document
from rlm.cli.host.check import check_json
from rlm.cli.host.config import check_document, settings_json
from rlm.cli.json_reference import COMMAND_OUTPUTS, render
from rlm.cli.policies.level_list import levels_json, manager_files
from rlm.cli.policies.level_text import LevelChange, changes_json, effect_json, level_json
from rlm.cli.reading.explain import explanation_json
from rlm.cli.reading.record_lines import json_lines
from rlm.cli.reading.status import status_json
from rlm.cli.reading.stored_objects import StoredObjects
from rlm.cli.segments.deletion_lines import deletions_json
from rlm.cli.segments.segment_lines import segments_json
from rlm.cli.stores.plugins import plugin_row
from rlm.cli.stores.storage import storage_json
from rlm.cli.topics.damaged_segments import damaged_segments
from rlm.cli.topics.describe import StoredPartitions, describe_json, effective_settings
from rlm.cli.topics.leases import lease_as_json
from rlm.cli.topics.lost_segment import losses_text
from rlm.cli.topics.offload import offloaded_as_json, request_as_json
from rlm.cli.topics.offload_status import status_as_json
from rlm.cli.topics.policy_text import policy_json
from rlm.cli.topics.resolve import PartitionLosses, resolved_text
from rlm.config.effective import EffectiveSetting
from rlm.operator.loss_acceptance import AcceptableLoss
from rlm.operator.offload import CopyProgress, OffloadedPartition, OffloadRequest
from rlm.operator.offload_status import offload_status
from rlm.operator.streamed_deletion import DeletionState, SegmentDeletion
from rlm.policy.blocked import Blocked
from rlm.policy.losses import CutOff, Losses
from rlm.policy.request.canary import CheckResult, CheckRow
from rlm.policy.request.dead_letters import DeadLetterState
from rlm.policy.stream.deletion import StreamedSegment
from rlm.policy.topic.policy_values import FileDefaults
from rlm.process.readiness import ReadinessReport
from rlm.remote_read.stored_records import Tier
from rlm.rest.manager_api import MANAGER_ENDPOINTS
from rlm.status.attention import find_problems
from rlm.status.cluster_processes import ProcessStatus
from rlm.status.document import FutureTimestamps
from rlm.status.explanation import ContainingSegment, LocalCopy, OffsetExplanation
from rlm.status.retention_preview import DueDeletion, RetentionPreview
from rlm.topics.level_effects import TopicEffect
from rlmm.codec import encode
from rlmm.consumer import ConsumedRecord
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.events.policy import OriginalConfig, PolicySetting
from rlmm.events.policy_level import PolicyLevel
from rlmm.events.registration import FileDefault
from rlmm.native.audit import NativeFinding, NativeFindingKind, NativePosition
from rlmm.positions import MetadataPosition
from rlmm.record_keys import parse_record_key
from rlmm.spi import SegmentRecord
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.offload_segments import OffloadSegmentStatus
from rlmm.state.partition_state import PartitionState, ReadLease
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.batches.batch import TimestampType
from rsm.segment.batches.records import Record
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import OffsetRange
from rsm.spi import ObjectFault
from rsm.storage.probe import ProbeResult, ProbeStep
from tests.metadata_builder import (
    FINISHED,
    ORDERS,
    life,
    offload_segment,
    registration,
    segment_metadata,
)
from tests.unit.rlm.cli.test_help import COMMAND, commands_of
from tests.unit.rlm.policy.views import POLICY
from tests.unit.rlm.status.status_rows import row
from tests.unit.rlm.status.test_document import FULL
from tests.unit.rsm.program.described_json import described_values, differences

CHECKOUT = Path(__file__).resolve().parents[4]
OFFSETS = OffsetRange(start_offset=10, end_offset=20)
BLOCKED = Blocked(reason="failing", values={"cause": "no space", "attempts": 3})
GAP = RecordedGap(offsets=OFFSETS, reason=GapReason.SHED, recorded_ms=5)
ANOMALY = Anomaly(
    segment=UUID(int=1),
    object_key="a/b.log",
    kind=AnomalyKind.MISSING,
    first_ms=1,
    last_ms=2,
    attempts=3,
)
LEASE = ReadLease(lease_id=UUID(int=5), offsets=OFFSETS, expires_ms=9, holder="spark")
SEGMENT = ContainingSegment(
    segment_id=UUID(int=1),
    state="COPY_SEGMENT_FINISHED",
    offsets=OFFSETS,
    readable=OFFSETS,
    size_bytes=4096,
    max_timestamp_ms=7,
    state_since_ms=8,
    is_dead_lettered=False,
    object_keys=("a/b.log",),
)
EXPLANATION = OffsetExplanation(
    offset=12,
    location="both",
    leader_epoch=1,
    log_start_offset=0,
    local_start_offset=5,
    high_watermark=50,
    segments=(SEGMENT,),
    gap=GAP,
    local_copy=LocalCopy(state="blocked", reason="young", offsets=OFFSETS, values={"age_ms": 1}),
)
PREVIEW = RetentionPreview(
    topic="orders",
    partition=0,
    log_start_offset=0,
    new_log_start_offset=20,
    local_start_offset=10,
    new_local_start_offset=20,
    rule="retention.ms=1",
    deletions=(DueDeletion(base_offset=0, end_offset=20, size_bytes=4096, rule="expired"),),
    trim_rule="local.retention.ms=1",
    trim_blocked=BLOCKED,
    expiry_blocked=BLOCKED,
)
PROCESS = ProcessStatus(
    role="gateway",
    broker_id=1,
    address="broker1:19092",
    is_live=True,
    is_ready=False,
    reasons=("no store",),
    http_address="broker1:8080",
    version="1",
    heartbeat_age_ms=5,
    process_id=id_to_text(UUID(int=2)),
    boot_id="boot",
    network_namespace="net:[1]",
)


def _status() -> Mapping[str, object]:
    reported = row(
        copy_blocked=BLOCKED,
        trim_blocked=BLOCKED,
        expiry_blocked=BLOCKED,
        oldest_unstored_age_ms=60_000,
        future_timestamps=FutureTimestamps(segment_count=2, max_timestamp_ms=9),
        problem="not owned",
        stream=FULL.stream,
    )
    rows = [replace(reported, gaps=(GAP,), anomalies=(ANOMALY,), leases=(LEASE,))]
    problems = find_problems(rows, silent_managers={1: "no answer"}, silent_leaders={})
    return status_json("cluster", rows, problems)


def _described() -> Mapping[str, object]:
    settings = effective_settings(
        POLICY,
        managers_trim_min_age_ms=1,
        managers=FileDefaults(),
    )
    stored = StoredPartitions(partitions=3, stored_segments=40, stored_bytes=5)
    return describe_json(POLICY, settings, stored)


def _segments() -> Mapping[str, object]:
    metadata = replace(
        segment_metadata(1, 0, 100, state=FINISHED),
        objects=(StoredObject(key="a", length_bytes=1, crc32c=2),),
    )
    record = SegmentRecord(metadata=metadata, copy_deadline_ms=0, changed_ms=7)
    found: Mapping[str, object] = json.loads("".join(segments_json([(ORDERS, record)])))
    return found


def _deletions() -> Mapping[str, object]:
    segment = StreamedSegment(
        metadata=segment_metadata(1, 0, 100, state=FINISHED),
        replaced_by=(),
        to_copy=(OFFSETS,),
        only_here=(OFFSETS,),
    )
    row = SegmentDeletion(segment=segment, state=DeletionState.ONLY_COPY)
    found: Mapping[str, object] = json.loads(deletions_json([row]))
    return found


def _offload_statuses() -> Mapping[str, object]:
    progress = CopyProgress(
        rolled_end_offset=300,
        stored_end_offset=100,
        requested_offset=250,
        requested_end_offset=200,
        lag_segments=2,
        lag_bytes=4096,
        blocked="failing",
    )
    streamed = [replace(offload_segment(1, OffloadSegmentStatus.OFFLOADED), objects=("a", "b"))]
    status = offload_status(ORDERS, 250, progress, "")
    return {"partitions": [status_as_json(status, streamed)]}


ORIGINALS = (OriginalConfig(name="retention.ms", value=None),)
LISTED = replace(POLICY, originals=ORIGINALS, inherited=frozenset(PolicySetting))
STORED = StoredObjects(anomalies=(ANOMALY,), states={"a/b.log": "missing"})
LEASES = {"leases": [lease_as_json(ORDERS, LEASE)]}
STORED_SEGMENT = replace(
    segment_metadata(2, 0, 100, state=FINISHED),
    objects=(StoredObject(key="a", length_bytes=1, crc32c=2),),
)
POSITION = MetadataPosition(partition=3, offset=17)


def _losses() -> object:
    damage = replace(ANOMALY, segment=STORED_SEGMENT.segment_id.id)
    damaged = damaged_segments(PartitionState(anomalies=(damage,)), (STORED_SEGMENT,))
    lost = Losses(
        cut_off=CutOff(leader_epoch=1, start_offset=5, end_offset=9, segment_count=2),
        moved_from_offset=3,
        local_start_offset=7,
    )
    found = [PartitionLosses(ORDERS, lost, 1, damaged)]
    return json.loads(resolved_text(found, accepted=True, as_json=True))


def _lost_segment() -> object:
    fault = ObjectFault(object_key="a", is_missing=True, reason="not found")
    loss = AcceptableLoss(
        segment_id=STORED_SEGMENT.segment_id, lost=(OFFSETS,), later_count=1, faults={"a": fault}
    )
    return json.loads(losses_text([loss], accepted=False, as_json=True))


def _records() -> list[object]:
    texts = {"key": b"k", "value": b"v", "headers": (("h", b"\xff"), ("n", None))}
    others = {"key": b"\xff", "value": b"\xff", "headers": ()}
    records = [
        Record(offset=1, timestamp_ms=2, timestamp_type=TimestampType.CREATE_TIME, **contents)
        for contents in (texts, others, {"key": None, "value": None, "headers": ()})
    ]
    return [*map(json.loads, json_lines(ORDERS, Tier.REMOTE, records))]


def _dead_letters() -> Mapping[str, object]:
    dead_letter = DeadLetter(
        metadata=STORED_SEGMENT,
        reason="refused",
        attempts=5,
        first_attempt_ms=1,
        last_attempt_ms=2,
        delete_started=POSITION,
    )
    return dead_letters_json(
        [
            DeadLetterRow(
                dead_letter=each, state=DeadLetterState.OPEN, record=None, outcome="deleted"
            )
            for each in (dead_letter, replace(dead_letter, delete_started=None))
        ]
    )


def _metadata_records() -> list[object]:
    started, finished, *_ = life(segment_metadata(1, 100, 200, epochs=((3, 100),)))
    return [
        consumed_document(
            ConsumedRecord(
                position=POSITION,
                append_time_ms=1,
                key=parse_record_key(encode(event).key),
                event=None if is_tombstone else event,
            )
        )
        for event, is_tombstone in ((started, False), (finished, True))
    ]


def _native_finding() -> object:
    return native_finding_document(
        NativeFinding(
            kind=NativeFindingKind.GAP,
            native_position=NativePosition(position=POSITION, append_time_ms=1),
            topic_id_partition=ORDERS,
            segment_id=STORED_SEGMENT.segment_id,
            offsets=OFFSETS,
        )
    )


def _config_check() -> Mapping[str, object]:
    path = Path("rlm.properties")
    problem = InvalidConfigError("the setting is unknown", file=path, line=7, key="log.dir")
    return check_document(path, [problem], ["others can read it"])


LEVEL = PolicyLevel(pattern="orders-*", retention_ms=1)
MANAGER = replace(registration(), file_defaults=(FileDefault(key="offload.mode", value="stream"),))
EFFECT = TopicEffect(
    topic="orders", topic_id=POLICY.topic_id, pattern="orders-*", before=None, after=LISTED
)


def _policy_changes() -> Mapping[str, object]:
    changes = [
        LevelChange(pattern=LEVEL.pattern, before=None, after=LEVEL),
        LevelChange(pattern="", before=replace(LEVEL, pattern=""), after=None),
    ]
    return changes_json(changes, [EFFECT], ["a note"], dry_run=True)


PLUGIN = EntryPoint(name="tape", value="acme.store:Tape", group="kafka_rlm.storage")
INSTALLED = next(iter(entry_points(group="console_scripts")))
PRINTED: Mapping[str, object] = {
    "topic resolve": _losses(),
    "topic resolve --lost-segment": _lost_segment(),
    "read": _records(),
    "offload": {
        "partitions": [
            offloaded_as_json(
                OffloadedPartition(partition=ORDERS, end_offset=9, segments=(STORED_SEGMENT,))
            )
        ]
    },
    "offload --no-wait": {
        "partitions": [
            request_as_json(OffloadRequest(partition=ORDERS, offset=9, stored_end_offset=5))
        ]
    },
    "dlq list": _dead_letters(),
    "dlq retry": _dead_letters(),
    "metadata dump": _metadata_records(),
    "metadata tail": _metadata_records(),
    "metadata audit-native": _native_finding(),
    "storage check": storage_json(
        "s3", [ProbeStep(verb="put", result=ProbeResult.FAILED, duration_ms=1.25, problem="403")]
    ),
    "plugins list": {"plugins": [plugin_row("storage", PLUGIN), plugin_row("storage", INSTALLED)]},
    "check": check_json(
        [CheckRow(check="manager", target="broker 1", result=CheckResult.FAILED, problem="none")],
        ok=False,
    ),
    "config check": _config_check(),
    "config show": settings_json(
        Path("rlm.properties"),
        [EffectiveSetting(key="log.dirs", value="/logs", line=each) for each in (0, 7)],
    ),
    "status": _status(),
    "processes": {"cluster_id": "cluster", "processes": [PROCESS.to_json()]},
    "topic list": {"topics": [policy_json(LISTED)]},
    "topic describe": _described(),
    "policy set": _policy_changes(),
    "policy list": levels_json([LEVEL], manager_files([], [MANAGER])),
    "policy describe": {**level_json(LEVEL), "topics": [effect_json(EFFECT)]},
    "policy delete": _policy_changes(),
    "apply": _policy_changes(),
    "segments list": _segments(),
    "segments delete": _deletions(),
    "explain": explanation_json(ORDERS, EXPLANATION, STORED),
    "offload-status": _offload_statuses(),
    "retention run": {"partitions": [PREVIEW.to_json()]},
    "leases list": LEASES,
    "leases release": LEASES,
}
ANSWERED: Mapping[str, object] = {
    "/v1/partitions": FULL.to_json(),
    "/v1/explanation": EXPLANATION.to_json(),
    "/v1/retention": PREVIEW.to_json(),
    "/healthz": {"healthy": True},
    "/readyz": ReadinessReport(is_ready=False, reasons=("a",), warnings=("b",)).to_json(),
}
BODIES = {each.path: each.body for each in MANAGER_ENDPOINTS if each.body is not None}


def test_page_when_made_again_then_equals_the_committed() -> None:
    """`make docs` writes the page."""
    assert (CHECKOUT / "docs" / "json.md").read_text(encoding="utf-8") == render()


def test_commands_when_they_have_a_json_option_then_the_page_knows_them() -> None:
    with_json = {
        " ".join(names)
        for names, command in commands_of(COMMAND)
        if any("--json" in each.opts for each in command.params)
    }

    assert {name.partition(" --")[0] for name in COMMAND_OUTPUTS} == with_json


@pytest.mark.parametrize("name", COMMAND_OUTPUTS)
def test_command_when_it_prints_json_then_every_field_is_described(name: str) -> None:
    printed, shape = PRINTED[name], COMMAND_OUTPUTS[name].shape

    documents = printed if isinstance(printed, list) else [printed]
    assert documents
    assert [found for each in documents for found in differences(shape, each)] == []


@pytest.mark.parametrize("path", BODIES)
def test_endpoint_when_it_answers_json_then_every_field_is_described(path: str) -> None:
    assert [*differences(BODIES[path], ANSWERED[path])] == []


def test_examples_when_taken_together_then_have_a_value_in_every_field() -> None:
    """Without an example value, no test would notice a wrong type."""
    shapes = [
        *((output.shape, PRINTED[name]) for name, output in COMMAND_OUTPUTS.items()),
        *((BODIES[path], ANSWERED[path]) for path in BODIES),
    ]
    seen = {found[:2] for shape, value in shapes for found in described_values(shape, value)}

    assert set(_fields_of(shape for shape, _ in shapes)) - seen == set()


def test_differences_when_a_document_changes_then_names_each() -> None:
    inner = JsonShape(name="I", meaning="i", fields={"n": JsonField(JsonKind.COUNT, "n")})
    shape = JsonShape(
        name="O",
        meaning="o",
        fields={
            "a": JsonField(JsonKind.TEXT, "a"),
            "b": JsonField(JsonKind.TEXT, "b"),
            "c": JsonField(inner, "c", is_list=True),
            "e": JsonField(JsonKind.TEXT, "e", is_optional=True),
        },
    )

    found = [*differences(shape, {"a": None, "c": [{"n": "1"}], "d": 1})]

    assert found == [".b: missing", ".a: null", ".c.n: not integer", ".d: not described"]


def _fields_of(shapes: Iterable[JsonShape]) -> Iterator[tuple[str, str]]:
    for shape in shapes:
        for each in shape.nested():
            yield from ((each.name, name) for name in each.fields)
