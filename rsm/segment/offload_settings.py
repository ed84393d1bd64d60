"""Represents a partition's offload mode, and the limits of its offload segments (PIP-76)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

OFFLOAD_SEGMENT_LEAST_BYTES = 1 << 10
# Index positions have 31 bits, and a segment may exceed its limit by the last appended bytes.
OFFLOAD_SEGMENT_GREATEST_BYTES = 1_792 << 20
OFFLOAD_SEGMENT_SHORTEST_MS = 1_000
OFFLOAD_SEGMENT_LONGEST_MS = 7 * 86_400_000


class OffloadMode(Enum):
    """Represents what the manager offloads without a request."""

    SEGMENT = 1  # The manager offloads log segments that the broker rolled (PIP-17).
    STREAM = 2  # The manager offloads the log while it grows, as offload segments (PIP-76).


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadSettings:
    """Represents how a partition is offloaded.

    With STREAM, an offload segment ends at `segment_max_bytes` of data, or `segment_rollover_ms`
    after it was assigned, whichever comes first (PIP-76).
    """

    mode: OffloadMode = OffloadMode.SEGMENT
    segment_max_bytes: int = 1 << 30
    segment_rollover_ms: int = 600_000

    def lowered_to(self, other: OffloadSettings) -> OffloadSettings:
        """Return these settings, with each limit lowered to that of `other` if it is smaller."""
        return replace(
            self,
            segment_max_bytes=min(self.segment_max_bytes, other.segment_max_bytes),
            segment_rollover_ms=min(self.segment_rollover_ms, other.segment_rollover_ms),
        )
