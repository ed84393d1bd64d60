"""Sets gauges from a manager's last cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rlm.metrics.metrics import Metrics
from rlm.policy.anomalies import object_counts
from rlm.status.document import LEADER, PartitionReport
from rlm.status.failures import failing_copies
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.gaps import GapReason


class CopiesInFlight(Protocol):
    """Represents the running copies of new segments; thread-safe."""

    def oldest_age_ms(self) -> int:
        """Return the age of the oldest copy in flight; 0 if there is none."""

    def hanging_count(self) -> int:
        """Return how many attempts were given up and still run."""


class OpenStreams(Protocol):
    """Represents the running streams; thread-safe."""

    def open_count(self) -> int:
        """Return how many segments are open."""

    def hanging_count(self) -> int:
        """Return how many attempts were given up and still run."""


class MergesInFlight(Protocol):
    """Represents the running merges; thread-safe."""

    def hanging_count(self) -> int:
        """Return how many attempts were given up and still run."""


class ManagerGauges:
    """Represents the gauges of a manager's state. Not thread-safe."""

    def __init__(
        self,
        metrics: Metrics,
        copies: CopiesInFlight,
        streams: OpenStreams,
        merges: MergesInFlight,
    ) -> None:
        self._metrics = metrics
        self._copies = copies
        self._streams = streams
        self._merges = merges
        self._shown_causes: set[str] = set()

    def show(self, before: Sequence[PartitionReport], reports: Sequence[PartitionReport]) -> None:
        """Set the gauges from `reports`; remove those of partitions led only in `before`."""
        led = [report for report in reports if report.role == LEADER]
        for report in led:
            self._show_led(report)
        still_led = {report.topic_id_partition for report in led}
        for report in before:
            tip = report.topic_id_partition
            if report.role == LEADER and tip not in still_led:
                self._metrics.forget_partition(tip.topic, tip.partition)
        self._show_failing(reports)
        self._metrics.oldest_copy_age_seconds.set(self._copies.oldest_age_ms() / 1000)
        lanes = (self._copies, self._streams, self._merges)
        self._metrics.copies_hanging.set(sum(each.hanging_count() for each in lanes))
        self._metrics.streams_open.set(self._streams.open_count())

    def _show_failing(self, reports: Sequence[PartitionReport]) -> None:
        """Show the causes of failing copies; remove past causes, so that alerts end."""
        failing = failing_copies(reports)
        for cause in self._shown_causes - failing.keys():
            self._metrics.copy_failing_partitions.remove(cause)
        for cause, count in failing.items():
            self._metrics.copy_failing_partitions.labels(cause).set(count)
        self._shown_causes = set(failing)

    def _show_led(self, report: PartitionReport) -> None:
        tip = report.topic_id_partition
        labels = (tip.topic, str(tip.partition))
        self._start_counters(tip.topic)
        if report.lag_bytes is None or report.lag_segments is None:
            return  # This cycle did not compute the values, so the last ones stay.
        self._metrics.remote_copy_lag_bytes.labels(*labels).set(report.lag_bytes)
        self._metrics.remote_copy_lag_segments.labels(*labels).set(report.lag_segments)
        self._metrics.remote_log_size_bytes.labels(*labels).set(report.remote_bytes)
        self._metrics.remote_overlap_bytes.labels(*labels).set(report.remote_overlap_bytes)
        self._metrics.remote_log_metadata_count.labels(*labels).set(report.remote_segments)
        if report.stream is None:
            self._metrics.forget_stream(tip.topic, tip.partition)
        else:
            waiting = report.stream.merge_waiting_bytes, report.stream.merge_waiting_segments
            self._metrics.merge_waiting_bytes.labels(*labels).set(waiting[0] or 0)
            self._metrics.merge_waiting_segments.labels(*labels).set(waiting[1] or 0)
        future = report.future_timestamps
        self._metrics.future_segments.labels(*labels).set(future.segment_count if future else 0)
        counts = object_counts(report.anomalies)
        for kind in AnomalyKind:
            self._metrics.object_anomalies.labels(*labels, kind.label).set(counts[kind])
        copy_reason = None if report.copy_blocked is None else report.copy_blocked.reason
        self._metrics.set_copy_blocked(tip.topic, tip.partition, reason=copy_reason)
        reason = None if report.trim_blocked is None else report.trim_blocked.reason
        self._metrics.set_trim_blocked(tip.topic, tip.partition, reason=reason)
        expiry_reason = None if report.expiry_blocked is None else report.expiry_blocked.reason
        self._metrics.set_expiry_blocked(tip.topic, tip.partition, reason=expiry_reason)

    def _start_counters(self, topic: str) -> None:
        """Export counters of rare faults from 0: PromQL's increase() ignores a first value."""
        for reason in GapReason:
            self._metrics.gaps_recorded.labels(topic, reason.name.lower())
        self._metrics.dead_letters.labels(topic)
