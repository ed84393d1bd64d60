"""Finds logs whose records, including those of the active segment, are all past the retention.

If all records of an idle partition are past its retention, a broker rolls the active segment and
deletes the records. While `rlm` disables the broker's retention, the broker does neither. The files
do not show the age of the newest record in an active segment. So this module queries the broker,
but only if all stored and rolled segments are past the retention.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from rlm.policy.retention import may_be_past_retention
from rlm.policy.view import PartitionView
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_ASK_INTERVAL_MS = 300_000  # Kafka's default of log.retention.check.interval.ms


class IdleWatch:
    """Checks each idle partition every 5 minutes. Not thread-safe."""

    def __init__(self, ports: Ports) -> None:
        self._broker = ports.broker
        self._clock = ports.clock

    def check_age(self, task: PartitionTask, view: PartitionView) -> PartitionView:
        """Return the view; if a check is due, with the broker's answer in `is_past_retention`."""
        if not may_be_past_retention(view):
            task.age_asked_ms = None
            return view
        now_ms, asked_ms = self._clock.monotonic_ms(), task.age_asked_ms
        if asked_ms is not None and now_ms - asked_ms < _ASK_INTERVAL_MS:
            return view
        task.age_asked_ms = now_ms
        try:
            return replace(view, is_past_retention=self._is_past(view))
        except TieredStorageError as error:
            _log.info(
                LogLine(
                    "cannot read the age of the newest record",
                    topic_partition=view.topic_id_partition,
                    error=error,
                )
            )
            return view

    def _is_past(self, view: PartitionView) -> bool:
        """Return whether all records are past the retention; False if none has a timestamp."""
        young_from_ms = view.moment.retention_ms - view.policy.retention_ms
        return young_from_ms > 0 and not self._has_any(view, young_from_ms) and self._has_any(view)

    def _has_any(self, view: PartitionView, since_ms: int = 0) -> bool:
        tip = view.topic_id_partition
        response = self._broker.first_offsets_since({tip: view.writer.leader_epoch}, since_ms)
        if tip in response.failed:
            raise response.failed[tip]
        return response.succeeded[tip] is not None
