"""Deletes one segment in a fixed order of effects.

    DELETE_SEGMENT_STARTED accepted → objects deleted → DELETE_SEGMENT_FINISHED

The started event names the expected state, and the fold refuses the event if the state has changed.
So a copy that has just finished is not deleted as an unfinished one. A failed deletion is retried
after growing pauses. It becomes a dead letter after the last attempt, or if too many segments fail.
So if a store deletes nothing, the dead-letter topic grows and the manager's memory does not.
"""

from __future__ import annotations

import logging

from rlm.metrics.metrics import Metrics
from rlm.policy.peers.gateways import live_gateways
from rlm.policy.plan import DeleteSegment
from rlm.policy.read_leases import lease_on
from rlm.tasks.context.deletion_start import start_deletion
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import Failures, RetryPauses
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.events.registration import dated_registrations
from rlmm.events.segment import SegmentDeadLettered, SegmentEvent
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer

_log = logging.getLogger(__name__)


class Expirer:
    """Deletes segments of one store. Thread-safe, for one call per segment at a time.

    Memory: one entry per segment whose deletion fails, at most `max_failing`.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        metrics: Metrics,
        max_attempts: int,
        first_pause_ms: int,
        max_failing: int = 1_000,
    ) -> None:
        self._ports = ports
        self._storage = ports.storage
        self._metadata = ports.metadata
        self._dead_letters = ports.dead_letters
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._metrics = metrics
        self._max_attempts = max_attempts
        self._max_failing = max_failing
        self._is_dead_lettering = False
        self._pauses = RetryPauses(ports.clock, first_pause_ms=first_pause_ms)

    def delete(self, action: DeleteSegment, writer: Writer) -> bool:
        """Continue a deletion as far as possible now; return whether the segment is deleted.

        Raises FencedError if the metadata refuses the start of the deletion, RetriableError if the
        metadata topic cannot be written. If the store fails, counts the error and returns False;
        the last attempt writes a dead letter.
        """
        if self._pauses.is_pausing(action.record.metadata.segment_id.id):
            return False
        started = self._start(action, writer)
        if self._is_read(action) or self._may_be_served(action):
            return False
        self._metrics.remote_delete_requests.labels(
            action.record.metadata.topic_id_partition.topic
        ).inc()
        try:
            self._storage.delete_log_segment_data(started)
        except TieredStorageError as error:
            self._record_failure(started, error)
            return False
        finished = started.in_state(
            SegmentState.DELETE_SEGMENT_FINISHED,
            event_timestamp_ms=self._clock.wall_ms(),
            writer=writer,
        )
        result = self._metadata.publish(SegmentEvent(event_id=self._new_id(), metadata=finished))
        self._pauses.clear(started.segment_id.id)
        self._is_dead_lettering = False
        _log.info(
            LogLine(
                "deleted segment",
                segment_id=started.segment_id,
                base_offset=started.offsets.start_offset,
                end_offset=started.offsets.end_offset,
                size_bytes=started.segment_size_bytes,
                rule=action.reason,
                accepted=result.accepted,
            )
        )
        return True

    def _is_read(self, action: DeleteSegment) -> bool:
        """Return whether a read lease overlaps the segment, for example one taken since the plan.

        If so, a later call deletes the objects, after the end of the lease. New lookups no longer
        find the segment.
        """
        metadata = action.record.metadata
        if metadata.is_open or metadata.state is SegmentState.COPY_SEGMENT_STARTED:
            return False
        now_ms = self._metadata.broker_time_ms()  # Leases that are read later are newer.
        state = self._metadata.partition_state(metadata.topic_id_partition)
        leases = state.active_leases(now_ms)
        return lease_on(leases, metadata.offsets) is not None

    def _may_be_served(self, action: DeleteSegment) -> bool:
        """Return whether a gateway may still read a segment whose deletion this call has started.

        If so, a later call deletes the objects, after the gateways have read the started event.
        """
        if action.record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            return False
        return bool(live_gateways(*dated_registrations(self._metadata)))

    def _start(self, action: DeleteSegment, writer: Writer) -> RemoteLogSegmentMetadata:
        metadata = action.record.metadata
        if metadata.state is SegmentState.DELETE_SEGMENT_STARTED:
            return metadata
        return start_deletion(self._ports, metadata, writer)

    def _record_failure(
        self, metadata: RemoteLogSegmentMetadata, error: TieredStorageError
    ) -> None:
        segment = metadata.segment_id
        self._metrics.remote_delete_errors.labels(segment.topic_id_partition.topic).inc()
        failures = self._pauses.record_failure(segment.id)
        what = "cannot delete a segment's objects"
        _log.warning(LogLine(what, segment_id=segment, attempts=failures.count, error=error))
        if self._is_full():
            self._pauses.forget_stale()
        if failures.count >= self._max_attempts or self._is_full():
            self._dead_letter(metadata, failures, error)

    def _is_full(self) -> bool:
        return self._pauses.failing_count > self._max_failing

    def _dead_letter(
        self, metadata: RemoteLogSegmentMetadata, failures: Failures, error: TieredStorageError
    ) -> None:
        record, topic = self._metadata.segment(metadata.segment_id), self._metadata.identity
        self._dead_letters.publish(
            DeadLetter(
                metadata=metadata,
                reason=str(error),
                attempts=failures.count,
                first_attempt_ms=failures.first_ms,
                last_attempt_ms=self._clock.wall_ms(),
                delete_started=None if record is None else record.changed_at,
                metadata_topic_id="" if topic is None else topic.topic_id,
            )
        )
        self._metadata.publish(
            SegmentDeadLettered(
                event_id=self._new_id(), segment_id=metadata.segment_id, attempts=failures.count
            )
        )
        self._pauses.clear(metadata.segment_id.id)
        self._metrics.dead_letters.labels(metadata.topic_id_partition.topic).inc()
        # While a store deletes nothing, one ERROR is enough: the dead letters name each segment.
        _log.log(
            logging.INFO if self._is_dead_lettering else logging.ERROR,
            LogLine(
                "gave up a deletion and wrote a dead letter",
                segment_id=metadata.segment_id,
                attempts=failures.count,
                error=error,
            ),
        )
        self._is_dead_lettering = True
