"""Records an anomaly when `rlm read` finds a stored object missing or corrupt."""

from __future__ import annotations

from uuid import uuid4

from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.anomaly_reporter import AnomalyReporter
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import CorruptError, NotFoundError
from rsm.segment.ids import RemoteLogSegmentId


def report_damage(
    metadata: RemoteLogMetadataManager, clock: Clock, error: NotFoundError | CorruptError
) -> None:
    """Record the object that a read's error is about; do nothing if it names no segment.

    RetriableError if the metadata topic cannot be written.
    """
    segment_id = error.context.get("segment_id")
    if not isinstance(segment_id, RemoteLogSegmentId):
        return
    record = metadata.segment(segment_id)
    if record is None:
        return
    anomalies = ReadAnomalies(clock)
    anomalies.record(record.metadata, error, offset=record.metadata.offsets.start_offset)
    AnomalyReporter(anomalies, metadata, clock, uuid4).step()
