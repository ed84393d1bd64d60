"""Finds segments with timestamps in the future, which retention by time keeps too long. Pure.

Producers set timestamps themselves (`message.timestamp.type=CreateTime`). If a producer's clock is
ahead, its segments outlive their retention, as in Kafka. Retention does not correct this by a
guess; the status shows it.
"""

from __future__ import annotations

from rlm.policy.retention import log_pieces
from rlm.policy.view import PartitionView
from rlm.status.document import FutureTimestamps

_SKEW_MS = 3_600_000  # Kafka's message.timestamp.after.max.ms: brokers accept less


def future_timestamps(view: PartitionView) -> FutureTimestamps | None:
    """Return timestamps ahead of both clocks of the view; None if there are none."""
    now_ms = max(view.moment.wall_ms, view.moment.broker_ms)
    ahead = [
        piece.max_timestamp_ms
        for piece in log_pieces(view)
        if piece.max_timestamp_ms > now_ms + _SKEW_MS
    ]
    if not ahead:
        return None
    return FutureTimestamps(segment_count=len(ahead), max_timestamp_ms=max(ahead))
