"""Records an anomaly if a check or a read finds that a stored object is damaged."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from rlmm.events.anomaly import AnomalyReported
from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.segment.clock import Clock
from rsm.segment.ids import RemoteLogSegmentId
from rsm.spi import ObjectFault


def report_fault(
    metadata: RemoteLogMetadataManager,
    segment_id: RemoteLogSegmentId,
    fault: ObjectFault,
    clock: Clock,
    new_id: Callable[[], UUID],
) -> None:
    """Record a damaged object as an anomaly of its partition, unless it is already recorded.

    Raises RetriableError if the metadata topic cannot be written or has no room for the anomaly.
    """
    now_ms = clock.wall_ms()
    anomaly = Anomaly(
        segment=segment_id.id,
        object_key=fault.object_key,
        kind=AnomalyKind.MISSING if fault.is_missing else AnomalyKind.CORRUPT,
        first_ms=now_ms,
        last_ms=now_ms,
        attempts=1,
    )
    tip = segment_id.topic_id_partition
    known = {each.id for each in metadata.partition_state(tip).anomalies}
    if anomaly.id not in known:
        metadata.publish(
            AnomalyReported(event_id=new_id(), topic_id_partition=tip, anomaly=anomaly)
        )
