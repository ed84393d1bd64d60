"""Shows a manager's last cycle, and what its metadata counted, as metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import Counter

from rlm.metrics import Metrics
from rlm.tasks.report import LEADER, PartitionReport
from rlmm.metrics import MetadataMetrics


class ManagerGauges:
    """Sets what describes a state, and carries over what others count. One thread's."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        oldest_copy_age_ms: Callable[[], int],
        metadata: Callable[[], MetadataMetrics],
    ) -> None:
        self._metrics = metrics
        self._oldest_copy_age_ms = oldest_copy_age_ms
        self._metadata = metadata
        self._carried: dict[tuple[Counter, str], int] = {}

    def show(self, before: Sequence[PartitionReport], reports: Sequence[PartitionReport]) -> None:
        """Show these reports; partitions that were led before and are not now are dropped."""
        led = [report for report in reports if report.role == LEADER]
        for report in led:
            self._show_led(report)
        still_led = {report.topic_id_partition for report in led}
        for report in before:
            tip = report.topic_id_partition
            if report.role == LEADER and tip not in still_led:
                self._metrics.forget_partition(tip.topic, tip.partition)
        self._metrics.oldest_copy_age_seconds.set(self._oldest_copy_age_ms() / 1000)
        self._show_metadata(self._metadata())

    def _show_metadata(self, counted: MetadataMetrics) -> None:
        metrics = self._metrics
        metrics.metadata_lag_events.set(counted.lag_events_count)
        metrics.metadata_newer_records.set(counted.newer_records_count)
        self._carry(metrics.metadata_events_applied, "", counted.applied_events_count)
        self._carry(metrics.metadata_rebuilds, "", counted.rebuilds_count)
        for reason, count in counted.refused_events_count.items():
            self._carry(metrics.metadata_events_refused, reason, count)
        for reason, count in counted.skipped_events_count.items():
            self._carry(metrics.metadata_events_skipped, reason, count)

    def _carry(self, counter: Counter, reason: str, count: int) -> None:
        """Raise a counter to what somebody else has counted since the process began."""
        before = self._carried.get((counter, reason), 0)
        labelled = counter.labels(reason) if reason else counter
        labelled.inc(count - before)
        self._carried[counter, reason] = count

    def _show_led(self, report: PartitionReport) -> None:
        tip = report.topic_id_partition
        labels = (tip.topic, str(tip.partition))
        if report.lag_bytes is None or report.lag_segments is None:
            return  # not looked at: what was last seen still stands
        self._metrics.remote_copy_lag_bytes.labels(*labels).set(report.lag_bytes)
        self._metrics.remote_copy_lag_segments.labels(*labels).set(report.lag_segments)
        self._metrics.remote_log_size_bytes.labels(*labels).set(report.remote_bytes)
        self._metrics.remote_log_metadata_count.labels(*labels).set(report.remote_segments)
        reason = None if report.trim_held is None else report.trim_held.reason
        self._metrics.set_trim_held(tip.topic, tip.partition, reason=reason)
        kept = None if report.expiry_held is None else report.expiry_held.reason
        self._metrics.set_expiry_held(tip.topic, tip.partition, reason=kept)
