"""A manager's warnings about damaged objects."""

from __future__ import annotations

from dataclasses import replace

from rlm.policy.trim_gate import TrimDecision
from rlm.policy.view import AttemptFailure
from rlm.status.document import PartitionReport
from rlm.status.failures import damaged_objects_warnings
from rlm.status.report import leader_report
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.segment.ids import id_to_text
from tests.metadata_builder import anomaly
from tests.unit.rlm.policy.views import Given, stored_up_to

SEGMENTS = stored_up_to(300)
SEGMENT = SEGMENTS[0].metadata.segment_id.id
EARLY = anomaly(SEGMENT.int, key="early.log")
LATE = replace(anomaly(SEGMENT.int, key="late.log"), first_ms=5_500)
ACCEPTED = anomaly(SEGMENT.int, key="early.log", kind=AnomalyKind.LOSS_ACCEPTED)


def report(*anomalies: Anomaly) -> PartitionReport:
    return leader_report(Given(segments=SEGMENTS, anomalies=anomalies).view(), TrimDecision())


def test_warnings_when_objects_are_damaged_then_count_them_and_name_the_first() -> None:
    (warning,) = damaged_objects_warnings([report(), report(LATE, EARLY, ACCEPTED)])

    assert warning == (
        "2 stored objects are recorded as damaged. The first is early.log (missing) of orders:0 "
        f"segment {id_to_text(SEGMENT)}. See `rlm status`"
    )


def test_warnings_when_nothing_is_damaged_then_none() -> None:
    assert damaged_objects_warnings([report()]) == ()


def test_warnings_when_a_repair_fails_then_say_why() -> None:
    full = AttemptFailure(error="full (x=1)", cause="full", is_corrupt=False, attempts=2)

    (warning,) = damaged_objects_warnings([report(), replace(report(), repair_failure=full)])

    assert warning == "repairs of damaged segments fail: full (1 partition)"
