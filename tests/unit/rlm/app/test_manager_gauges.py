from __future__ import annotations

from prometheus_client import CollectorRegistry

from rlm.app.manager_gauges import ManagerGauges
from rlm.metrics.metrics import Metrics
from rlm.policy.trim_gate import TrimDecision
from rlm.status.document import StreamReport
from rlm.status.report import leader_report, waiting_report
from rlmm.state.anomalies import AnomalyKind
from tests.metadata_builder import anomaly
from tests.unit.rlm.app.no_copies import NoCopies
from tests.unit.rlm.policy.views import Given, stored_up_to


def test_gauges_when_a_stored_object_is_on_record_as_missing_then_count_it_by_kind() -> None:
    metrics = Metrics(CollectorRegistry())
    gauges = ManagerGauges(metrics, NoCopies(), NoCopies(), NoCopies())
    segments = stored_up_to(300)
    found = anomaly(segments[0].metadata.segment_id.id.int)
    damaged = leader_report(Given(segments=segments, anomalies=(found,)).view(), TrimDecision())
    whole = leader_report(Given(segments=segments).view(), TrimDecision())

    shown = []
    for before, report in (((), damaged), ((damaged,), whole)):
        gauges.show(before, (report,))
        labels = {"topic": "orders", "partition": "0"}
        shown.append(
            [
                metrics.registry.get_sample_value(
                    "rlm_stored_object_anomalies", {**labels, "kind": kind}
                )
                for kind in ("missing", "corrupt")
            ]
        )

    assert shown == [[1, 0], [0, 0]]


def test_gauges_when_the_loss_of_an_object_is_accepted_then_count_it_once() -> None:
    metrics = Metrics(CollectorRegistry())
    gauges = ManagerGauges(metrics, NoCopies(), NoCopies(), NoCopies())
    segments = stored_up_to(300)
    segment = segments[0].metadata.segment_id.id.int
    found = (anomaly(segment), anomaly(segment, kind=AnomalyKind.LOSS_ACCEPTED))

    view = Given(segments=segments, anomalies=found).view()
    gauges.show((), (leader_report(view, TrimDecision()),))

    samples = {
        (sample.labels["kind"], sample.value)
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "rlm_stored_object_anomalies"
    }
    assert samples == {("missing", 0), ("corrupt", 0), ("loss_accepted", 1)}


def test_gauges_when_a_topic_is_led_then_its_losses_and_dead_letters_count_from_zero() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.gaps_recorded.labels("orders", "shed").inc()
    gauges = ManagerGauges(metrics, NoCopies(), NoCopies(), NoCopies())

    gauges.show((), (leader_report(Given().view(), TrimDecision()),))

    counted = {
        (sample.name, sample.labels.get("reason")): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name in {"rlm_gaps_recorded_total", "rlm_dead_letters_total"}
    }
    assert counted == {
        ("rlm_gaps_recorded_total", "shed"): 1,
        ("rlm_gaps_recorded_total", "external_start"): 0,
        ("rlm_gaps_recorded_total", "accepted_loss"): 0,
        ("rlm_dead_letters_total", None): 0,
    }


def test_gauges_when_streamed_segments_wait_for_a_merge_then_count_them_while_it_is_streamed() -> (
    None
):
    metrics = Metrics(CollectorRegistry())
    gauges = ManagerGauges(metrics, NoCopies(), NoCopies(), NoCopies())
    view = Given().view()
    waiting = StreamReport(merge_waiting_segments=12, merge_waiting_bytes=340)
    streamed = leader_report(view, TrimDecision(), stream=waiting)
    plain = leader_report(view, TrimDecision())
    labels = {"topic": "orders", "partition": "0"}

    shown = []
    for before, reports in (((), (streamed,)), ((streamed,), (plain,)), ((plain,), (streamed,))):
        gauges.show(before, reports)
        shown.append(
            [
                metrics.registry.get_sample_value(f"rlm_stream_merge_waiting_{unit}", labels)
                for unit in ("segments", "bytes")
            ]
        )
    gauges.show((plain,), (streamed,))
    not_evaluated = waiting_report(
        streamed.topic_id_partition, 1, is_claimed=True, problem="the view failed"
    )
    gauges.show((streamed,), (not_evaluated,))
    assert metrics.registry.get_sample_value("rlm_stream_merge_waiting_bytes", labels) == 340
    gauges.show((streamed,), ())

    assert shown == [[12, 340], [None, None], [12, 340]]
    assert metrics.registry.get_sample_value("rlm_stream_merge_waiting_bytes", labels) is None
