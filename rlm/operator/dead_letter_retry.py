"""Finishes a deletion that became a dead letter: objects deleted → DELETE_SEGMENT_FINISHED.

Anyone may: the decision was made, and its DELETE_SEGMENT_STARTED stands. Deleting what is gone
already is no error, so it may be done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from rlm.policy.read_leases import lease_on
from rlmm.events.values import SegmentEvent
from rlmm.spi import RemoteLogMetadataManager, SegmentRecord
from rsm.segment.clock import Clock
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.metadata import SegmentState
from rsm.spi import RemoteStorageManager


class DeadLetterRetry:
    """Thread-safe."""

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
        """Delete the objects of a segment in DELETE_SEGMENT_STARTED and say so.

        Raises RetriableError if the store still refuses, or somebody reads it; FencedError if the
        metadata refused, because somebody else has finished it meanwhile.
        """
        metadata = record.metadata
        state = self._metadata.partition_state(metadata.topic_id_partition)
        lease = lease_on(state.active_leases(self._metadata.broker_time_ms()), metadata.offsets)
        if lease is not None:
            raise RetriableError("somebody reads it", holder=lease.holder)
        self._storage.delete_log_segment_data(metadata)
        finished = metadata.in_state(
            SegmentState.DELETE_SEGMENT_FINISHED, event_timestamp_ms=self._clock.wall_ms()
        )
        result = self._metadata.publish(SegmentEvent(event_id=self._new_id(), metadata=finished))
        if not result.accepted:
            raise FencedError("refused by the metadata", reason=result.refusal)
