"""docs/json.md, and whether the commands print what it describes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from rlm.cli.json_reference import COMMAND_DOCUMENTS, UNDESCRIBED_COMMANDS, render
from rlm.cli.reading.explain import explanation_json
from rlm.cli.reading.segment_lines import segments_json
from rlm.cli.reading.status import status_json
from rlm.cli.reading.stored_objects import StoredObjects
from rlm.cli.topics.describe import StoredPartitions, describe_json, effective_settings
from rlm.cli.topics.leases import lease_as_json
from rlm.cli.topics.offload_status import status_as_json
from rlm.cli.topics.policy_text import policy_json
from rlm.operator.offload import CopyProgress
from rlm.operator.offload_status import offload_status
from rlm.policy.blocked import Blocked
from rlm.rest.manager_api import MANAGER_ENDPOINTS
from rlm.status.attention import find_problems
from rlm.status.cluster_processes import ProcessStatus
from rlm.status.document import FutureTimestamps, ReadinessReport
from rlm.status.explanation import ContainingSegment, LocalCopy, OffsetExplanation
from rlm.status.json_shape import JsonField, JsonKind, JsonShape
from rlm.status.retention_preview import DueDeletion, RetentionPreview
from rlmm.events.policy import OriginalConfig
from rlmm.spi import SegmentRecord
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.partition_state import ReadLease
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import FINISHED, ORDERS, segment_metadata
from tests.unit.rlm.cli.test_help import COMMAND, commands_of
from tests.unit.rlm.policy.views import POLICY
from tests.unit.rlm.status.described_json import described_values, differences
from tests.unit.rlm.status.status_rows import row
from tests.unit.rlm.status.test_document import FULL

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
    )
    rows = [replace(reported, gaps=(GAP,), anomalies=(ANOMALY,), leases=(LEASE,))]
    problems = find_problems(rows, silent_managers={1: "no answer"}, silent_leaders={})
    return status_json("cluster", rows, problems)


def _described() -> Mapping[str, object]:
    settings = effective_settings(POLICY, managers_trim_lag_ms=0, managers_trim_min_age_ms=1)
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
    return {"partitions": [status_as_json(offload_status(ORDERS, 250, progress, ""))]}


ORIGINALS = (OriginalConfig(name="retention.ms", value=None),)
STORED = StoredObjects(anomalies=(ANOMALY,), states={"a/b.log": "missing"})
LEASES = {"leases": [lease_as_json(ORDERS, LEASE)]}
PRINTED: Mapping[str, object] = {
    "status": _status(),
    "processes": {"cluster_id": "cluster", "processes": [PROCESS.to_json()]},
    "topic list": {"topics": [policy_json(replace(POLICY, originals=ORIGINALS))]},
    "topic describe": _described(),
    "segments list": _segments(),
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
    """`make docs` writes it."""
    assert (CHECKOUT / "docs" / "json.md").read_text(encoding="utf-8") == render()


def test_commands_when_they_have_a_json_option_then_the_page_knows_them() -> None:
    with_json = {
        " ".join(names)
        for names, command in commands_of(COMMAND)
        if any("--json" in each.opts for each in command.params)
    }

    assert sorted((*COMMAND_DOCUMENTS, *UNDESCRIBED_COMMANDS)) == sorted(with_json)


@pytest.mark.parametrize("name", COMMAND_DOCUMENTS)
def test_command_when_it_prints_json_then_every_field_is_described(name: str) -> None:
    assert [*differences(COMMAND_DOCUMENTS[name], PRINTED[name])] == []


@pytest.mark.parametrize("path", BODIES)
def test_endpoint_when_it_answers_json_then_every_field_is_described(path: str) -> None:
    assert [*differences(BODIES[path], ANSWERED[path])] == []


def test_examples_when_taken_together_then_have_a_value_in_every_field() -> None:
    """Otherwise a type could be wrong without a test that sees it."""
    shapes = [
        *((COMMAND_DOCUMENTS[name], PRINTED[name]) for name in COMMAND_DOCUMENTS),
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
        },
    )

    found = [*differences(shape, {"a": None, "c": [{"n": "1"}], "d": 1})]

    assert found == [".b: missing", ".a: null", ".c.n: not integer", ".d: not described"]


def _fields_of(shapes: Iterable[JsonShape]) -> Iterator[tuple[str, str]]:
    for shape in shapes:
        for each in shape.nested():
            yield from ((each.name, name) for name in each.fields)
