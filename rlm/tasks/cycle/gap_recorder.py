"""Records gaps in the metadata topic, and warns when records were lost before they were stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rlm.metrics.metrics import Metrics
from rlm.policy.view import PartitionView
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlmm.events.values import GapReason, GapsRecorded, PolicyState, RecordedGap
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition

_log = logging.getLogger(__name__)

_LOST = "records lost before they were stored, gap recorded"


class GapRecorder:
    """Publishes the gaps of led partitions. Not thread-safe."""

    def __init__(self, ports: Ports, metrics: Metrics | None = None) -> None:
        self._metadata = ports.metadata
        self._new_id = ports.new_id
        self._metrics = metrics
        self._suspected: set[TopicIdPartition] = set()

    def look(
        self, lead: PartitionLead, view: PartitionView, gaps: Sequence[RecordedGap] | None
    ) -> None:
        """Record gaps that nothing in `rlm` made, once two cycles in a row have seen gaps.

        When a client deletes records through a gateway, the broker accepts the deletion a moment
        before the metadata topic shows it. Until then it looks like an external start.
        """
        tip = lead.topic_id_partition
        if gaps is None:
            self._suspected.discard(tip)
        elif tip not in self._suspected:
            self._suspected.add(tip)
        elif self.record(lead, view, gaps):
            self._suspected.discard(tip)

    def record(self, lead: PartitionLead, view: PartitionView, gaps: Sequence[RecordedGap]) -> bool:
        """Publish all gaps of a partition; return whether the metadata topic accepted them."""
        tip = lead.topic_id_partition
        event = GapsRecorded(
            event_id=self._new_id(),
            topic_id_partition=tip,
            writer=lead.writer,
            gaps=tuple(gaps),
        )
        try:
            result = self._metadata.publish(event)
        except RetriableError as error:
            _log.warning("gap not recorded", extra={"topic_partition": tip, "error": error})
            return False
        if not result.accepted:
            _log.warning("gap refused", extra={"topic_partition": tip, "reason": result.refusal})
            return False
        before = {gap.offsets for gap in view.state.gaps}
        # After `rlm` stops tiering a topic, its owner decides what the broker deletes: no warning.
        level = logging.INFO if view.policy.state is PolicyState.DISABLED else logging.WARNING
        for gap in gaps:
            if gap.offsets not in before:
                fields = {"topic_partition": tip, "offsets": gap.offsets, "reason": gap.reason.name}
                if gap.reason is GapReason.ACCEPTED_LOSS:
                    _log.info("recorded the gap of an accepted loss", extra=fields)
                else:
                    _log.log(level, _LOST, extra=fields)
                if self._metrics is not None:
                    self._metrics.gaps_recorded.labels(tip.topic, gap.reason.name.lower()).inc()
        return True
