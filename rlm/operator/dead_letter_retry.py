"""Finishes a dead letter's deletion: deletes the objects, records DELETE_SEGMENT_FINISHED.

Any process may do this, because the accepted DELETE_SEGMENT_STARTED records the decision. It may
run again: the deletion of a missing object is no error.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from rlm.policy.read_leases import lease_on
from rlmm.events.segment import SegmentEvent
from rlmm.spi import RemoteLogMetadataManager, SegmentRecord
from rsm.segment.clock import Clock
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.metadata import SegmentState
from rsm.spi import RemoteStorageManager


class DeadLetterRetry:
    """Finishes dead letters' deletions. Thread-safe."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        storage: RemoteStorageManager,
        clock: Clock,
        new_id: Callable[[], UUID],
    ) -> None:
        self._metadata = metadata
        self._storage = storage
        self._clock = clock
        self._new_id = new_id

    def finish(self, record: SegmentRecord) -> None:
        """Delete the objects of a segment in DELETE_SEGMENT_STARTED; record the finished deletion.

        Raises RetriableError if the store still refuses or a lease is active. Raises FencedError if
        the metadata refuses the end, for example because another process has recorded it.
        """
        metadata = record.metadata
        now_ms = self._metadata.broker_time_ms()  # Leases that are read later are newer.
        state = self._metadata.partition_state(metadata.topic_id_partition)
        lease = lease_on(state.active_leases(now_ms), metadata.offsets)
        if lease is not None:
            raise RetriableError(
                "cannot delete the segment: a read lease keeps it", holder=lease.holder
            )
        self._storage.delete_log_segment_data(metadata)
        finished = metadata.in_state(
            SegmentState.DELETE_SEGMENT_FINISHED, event_timestamp_ms=self._clock.wall_ms()
        )
        result = self._metadata.publish(SegmentEvent(event_id=self._new_id(), metadata=finished))
        if not result.accepted:
            raise FencedError(
                "cannot record the end of the deletion: the metadata refuses it",
                reason=result.refusal,
            )
