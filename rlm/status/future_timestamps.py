"""Which segments have timestamps of the future: retention by time keeps them until long after that.

Producers stamp records themselves (`message.timestamp.type=CreateTime`). One with a clock that is
ahead makes its segments outlive their retention, in Kafka, too; nothing is deleted early or late on
a guess, but it is to be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlm.policy.retention import log_pieces
from rlm.policy.view import PartitionView

_SKEW_MS = 3_600_000  # Kafka's message.timestamp.after.max.ms: brokers take what is less ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureTimestamps:
    """How many segments of a partition, stored or rolled, are stamped so, and the greatest one."""

    segment_count: int
    max_timestamp_ms: int


def future_timestamps(view: PartitionView) -> FutureTimestamps | None:
    """None if there are none. A time is of the future if it is for our clock and the brokers'."""
    now_ms = max(view.moment.wall_ms, view.moment.broker_ms)
    ahead = [
        piece.max_timestamp_ms
        for piece in log_pieces(view)
        if piece.max_timestamp_ms > now_ms + _SKEW_MS
    ]
    if not ahead:
        return None
    return FutureTimestamps(segment_count=len(ahead), max_timestamp_ms=max(ahead))
