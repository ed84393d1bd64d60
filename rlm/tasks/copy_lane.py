"""Copies the candidates of a partition one after the other, oldest first, until one fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Lock
from uuid import UUID

from rlm.metrics import Metrics
from rlm.source.log_source import LocalSegment
from rlm.tasks.copier import Copier, CopyOrder
from rlm.tasks.lanes import Lanes
from rlm.tasks.leadership import Leadership
from rlm.tasks.partition_lead import PartitionLead
from rlm.tasks.ports import Ports
from rlm.tasks.retry_pauses import RetryPauses
from rsm.segment.epochs import Lineage
from rsm.segment.errors import FencedError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A copy that runs now: its segment's id and when it began (monotonic)."""

    segment_id: UUID
    started_at_ms: int


class CopyLanes:
    """Copies of all led partitions, one segment of each at a time. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        *,
        lanes: Lanes,
        leadership: Leadership,
        metrics: Metrics,
        stopping: Event,
        attempt_timeout_ms: int,
        first_pause_ms: int,
    ) -> None:
        self._lanes = lanes
        self._copier = Copier(ports)
        self._leadership = leadership
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._metrics = metrics
        self._stopping = stopping
        self._attempt_timeout_ms = attempt_timeout_ms
        self._pauses = RetryPauses(ports.clock, first_pause_ms=first_pause_ms)
        self._in_flight: dict[TopicIdPartition, InFlight] = {}
        self._lock = Lock()

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """The id of the segment being copied for a partition, if any."""
        with self._lock:
            current = self._in_flight.get(tip)
        return frozenset() if current is None else frozenset({current.segment_id})

    def oldest_age_ms(self) -> int:
        """Age of the oldest copy in flight; 0 if there is none."""
        with self._lock:
            started = [flight.started_at_ms for flight in self._in_flight.values()]
        return self._clock.monotonic_ms() - min(started) if started else 0

    def offer(
        self, lead: PartitionLead, segments: Sequence[LocalSegment], lineage: Lineage
    ) -> None:
        """Copy `segments` in order, unless this partition is being copied or has just failed."""
        if segments and not self._pauses.pausing(lead.topic_id_partition):
            self._lanes.offer(
                lead.topic_id_partition, lambda: self._copy_all(lead, segments, lineage)
            )

    def _copy_all(
        self, lead: PartitionLead, segments: Sequence[LocalSegment], lineage: Lineage
    ) -> None:
        for segment in segments:
            if self._stopped(lead) or not self._copy_one(lead, segment, lineage):
                return

    def _copy_one(self, lead: PartitionLead, segment: LocalSegment, lineage: Lineage) -> bool:
        tip = lead.topic_id_partition
        order = CopyOrder(
            lead=lead,
            segment_id=self._new_id(),
            segment=segment,
            lineage=lineage,
            timeout_ms=self._attempt_timeout_ms,
            stopped=lambda: self._stopped(lead),
        )
        with self._lock:
            self._in_flight[tip] = InFlight(
                segment_id=order.segment_id, started_at_ms=self._clock.monotonic_ms()
            )
        self._metrics.remote_copy_requests.labels(tip.topic).inc()
        try:
            finished = self._copier.copy(order)
        except FencedError as error:
            _log.info("copy given up", extra={"topic_partition": tip, "error": error})
            return False
        except TieredStorageError as error:
            self._metrics.remote_copy_errors.labels(tip.topic).inc()
            failures = self._pauses.failed(tip)
            _log.warning(
                "copy failed",
                extra={
                    "topic_partition": tip,
                    "base_offset": segment.offsets.start_offset,
                    "attempts": failures.count,
                    "error": error,
                },
            )
            return False
        finally:
            with self._lock:
                del self._in_flight[tip]
        self._pauses.ended(tip)
        self._metrics.remote_copy_bytes.labels(tip.topic).inc(finished.segment_size_bytes)
        return True

    def _stopped(self, lead: PartitionLead) -> bool:
        return self._stopping.is_set() or not self._leadership.still_leads(lead)
