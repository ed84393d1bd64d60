"""Records gaps in the metadata topic, and warns when records were lost before they were stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rlm.metrics.metrics import Metrics
from rlm.policy.view import PartitionView
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.gaps import GapsRecorded
from rlmm.events.policy import PolicyState
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.errors import RetriableError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_LOST = "recorded a gap: its records were lost before they were stored"


class GapRecorder:
    """Publishes the gaps of led partitions. Not thread-safe."""

    def __init__(self, ports: Ports, metrics: Metrics | None = None) -> None:
        self._metadata = ports.metadata
        self._new_id = ports.new_id
        self._metrics = metrics

    def record_if_repeated(
        self, task: PartitionTask, view: PartitionView, gaps: Sequence[RecordedGap] | None
    ) -> None:
        """Record the gaps of external starts, once two consecutive cycles have found gaps.

        When a client deletes records through a gateway, the broker accepts the deletion a moment
        before the metadata topic records it. Until then, it looks like an external start.
        """
        if gaps is None:
            task.suspects_gaps = False
        elif not task.suspects_gaps:
            task.suspects_gaps = True
        elif self.record(task, view, gaps):
            task.suspects_gaps = False

    def record(self, task: PartitionTask, view: PartitionView, gaps: Sequence[RecordedGap]) -> bool:
        """Publish all gaps of a partition; return whether the metadata topic accepted them."""
        tip = task.topic_id_partition
        event = GapsRecorded(
            event_id=self._new_id(),
            topic_id_partition=tip,
            writer=task.lead.writer,
            gaps=tuple(gaps),
        )
        try:
            result = self._metadata.publish(event)
        except RetriableError as error:
            _log.warning(LogLine("cannot record a gap", topic_partition=tip, error=error))
            return False
        if not result.accepted:
            what = "cannot record a gap: the metadata refuses it"
            _log.warning(LogLine(what, topic_partition=tip, reason=result.refusal))
            return False
        before = {gap.offsets for gap in view.state.gaps}
        # After `rlm` stops tiering a topic, its owner decides what the broker deletes: no warning.
        level = logging.INFO if view.policy.state is PolicyState.DISABLED else logging.WARNING
        for gap in gaps:
            if gap.offsets not in before:
                fields = {"topic_partition": tip, "offsets": gap.offsets, "reason": gap.reason.name}
                if gap.reason is GapReason.ACCEPTED_LOSS:
                    _log.info(LogLine("recorded the gap of an accepted loss", **fields))
                else:
                    _log.log(level, LogLine(_LOST, **fields))
                if self._metrics is not None:
                    self._metrics.gaps_recorded.labels(tip.topic, gap.reason.name.lower()).inc()
        return True
