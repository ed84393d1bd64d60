"""What the metadata side counts, as plain numbers; the process exports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataMetrics:
    """Counters since the process began, and where it is now.

    `refused_events_count` and `skipped_events_count` are by reason, `positions` are next offsets by
    metadata partition. `lag_events_count` is against the ends as they were last asked for.
    `newer_records_count` are those that only a newer version can fold.
    """

    ready: bool
    applied_events_count: int
    refused_events_count: Mapping[str, int] = field(default_factory=dict)
    skipped_events_count: Mapping[str, int] = field(default_factory=dict)
    rebuilds_count: int = 0
    failures_count: int = 0
    positions: Mapping[int, int] = field(default_factory=dict)
    lag_events_count: int = 0
    newer_records_count: int = 0
