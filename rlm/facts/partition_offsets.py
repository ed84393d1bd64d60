"""Represents the offsets of one partition, as its leader reports them. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffsets:
    """Represents three offsets of a log, fetched in this order, so that each is ≤ the next."""

    log_start_offset: int
    last_stable_offset: int
    high_watermark: int

    @property
    def committed_end_offset(self) -> int:
        """Return the end of the storable records. Later ones may be truncated or aborted."""
        return min(self.high_watermark, self.last_stable_offset)
