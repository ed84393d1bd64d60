"""Checks segments a last time before one of them is deleted or given up.

Since the check that found the damage, the object may have been restored, or the replacement may
have been damaged. In both cases, nothing is deleted.
"""

from __future__ import annotations

from threading import Event

from rlm.policy.plan import DeleteSegment
from rlm.tasks.context.ports import Ports
from rlm.tasks.integrity.object_check import SegmentObjectCheck
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.errors import FencedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

_TIMEOUT_MS = 600_000


class DamageProof:
    """Checks lengths and checksums, and reads segments reported as corrupt. Thread-safe."""

    def __init__(self, ports: Ports, stopping: Event) -> None:
        self._metadata = ports.metadata
        self._check = SegmentObjectCheck(ports, stopping, timeout_ms=_TIMEOUT_MS)

    def require(self, action: DeleteSegment) -> None:
        """Raise FencedError if the damaged segment is whole again, or a replacement is not whole.

        Checks nothing if the segment is neither damaged nor replaced. Raises RetriableError if the
        store cannot answer, StoppedError if the process stops.
        """
        if action.is_damaged:
            self.require_damaged(action.record.metadata)
        for segment_id in action.replaced_by:
            self._require_whole(segment_id)

    def require_damaged(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Raise FencedError if all objects of a segment are whole.

        Raises RetriableError if the store cannot answer, StoppedError if the process stops.
        """
        state = self._metadata.partition_state(metadata.topic_id_partition)
        is_corrupt = any(
            each.segment == metadata.segment_id.id and each.kind is AnomalyKind.CORRUPT
            for each in state.anomalies
        )
        if not self._check.faults(metadata, read=is_corrupt):
            raise FencedError(
                "cannot delete or give up a damaged segment: its objects are whole again",
                segment_id=metadata.segment_id,
            )

    def _require_whole(self, segment_id: RemoteLogSegmentId) -> None:
        record = self._metadata.segment(segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            raise FencedError(
                "cannot delete a segment: its replacement is not stored",
                segment_id=segment_id,
            )
        for fault in self._check.faults(record.metadata, read=False):
            raise FencedError(
                "cannot delete a segment: its replacement is damaged",
                segment_id=segment_id,
                object=fault.object_key,
            )
