"""The documents of a process, written and read again."""

from __future__ import annotations

import json

import pytest

from rlm.policy.blocked import Blocked
from rlm.policy.view import AttemptFailure
from rlm.status.document import FutureTimestamps, PartitionReport, StreamReport
from rlm.status.document_parts import gap_from_json, gap_to_json
from rlm.status.json_object import JsonObject
from rlmm.state.gaps import GapReason
from rsm.segment.errors import CorruptError
from tests.metadata_builder import gap
from tests.unit.rlm.cli.stated_managers import report

FULL = report(
    rolled_end_offset=9,
    stored_end_offset=7,
    offload_offset=8,
    oldest_unstored_age_ms=60_000,
    offload_end_offset=7,
    remote_segments=3,
    remote_bytes=300,
    remote_overlap_bytes=40,
    copy_blocked=Blocked(reason="failing", values={"cause": "no space", "attempts": 3}),
    trim_blocked=Blocked(reason="not_stored"),
    expiry_blocked=Blocked(reason="read_lease", values={"holder": "spark"}),
    is_copying=True,
    is_diverged=True,
    has_external_start=True,
    future_timestamps=FutureTimestamps(segment_count=2, max_timestamp_ms=9),
    repair_failure=AttemptFailure(error="e", cause="c", is_corrupt=True, attempts=2, is_final=True),
    problem="not owned",
    stream=StreamReport(
        begin_offset=5,
        position_offset=9,
        size_bytes=100,
        age_ms=7,
        unstored_ms=6,
        rollover_ms=60_000,
        open_transaction_ms=8,
        merge_waiting_segments=12,
        merge_waiting_bytes=340,
        merge_failure=AttemptFailure(error="m", cause="d", is_corrupt=False, attempts=1),
    ),
)


@pytest.mark.parametrize("sent", [FULL, report(), report(role="follower", lag_bytes=None)])
def test_report_when_sent_as_json_then_read_back(sent: PartitionReport) -> None:
    document = json.loads(json.dumps(sent.to_json()))

    assert PartitionReport.from_json(JsonObject(document)) == sent


def test_report_when_a_newer_manager_sends_more_then_the_rest_is_read() -> None:
    document = {**FULL.to_json(), "shape": {"a": [1]}}

    assert PartitionReport.from_json(JsonObject(document)) == FULL


@pytest.mark.parametrize("name", ["topic", "topic_id", "partition", "role", "leader_epoch"])
def test_report_when_it_lacks_what_every_version_sends_then_corrupt(name: str) -> None:
    document = {key: value for key, value in FULL.to_json().items() if key != name}

    with pytest.raises(CorruptError) as raised:
        PartitionReport.from_json(JsonObject(document))

    assert raised.value.context["field"] == name


def test_gap_when_shown_then_has_its_reason_as_the_metrics_have() -> None:
    lost = gap(3, 5, reason=GapReason.ACCEPTED_LOSS)

    document = gap_to_json(lost)

    assert document == {
        "start_offset": 3,
        "end_offset": 5,
        "reason": "accepted_loss",
        "recorded_ms": 5_000,
    }
    assert gap_from_json(JsonObject(document)) == lost


def test_gap_when_its_reason_is_of_a_newer_version_then_corrupt() -> None:
    document = {**gap_to_json(gap(3, 5)), "reason": "eaten"}

    with pytest.raises(CorruptError) as raised:
        gap_from_json(JsonObject(document))

    assert raised.value.context["field"] == "reason"
