"""What the metadata side counts, as plain numbers; the process exports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataMetrics:
    """Counters since the process began, and where it is now.

    `refused_events_count` and `skipped_events_count` are by reason, `positions` are next offsets by
    metadata partition. `lag_events_count` is against the ends as they were last asked for,
    `missing_events_count` against those that were there when following began.
    `newer_records_count` are those that only a newer version can fold. `not_ready` says why it is
    not ready, empty if it is. Of the partitions followed, `catching_up_count` do not answer yet.
    What the cache takes: `segments_count` and `rows_count` are estimates.
    """

    ready: bool
    not_ready: str = ""
    applied_events_count: int = 0
    refused_events_count: Mapping[str, int] = field(default_factory=dict)
    skipped_events_count: Mapping[str, int] = field(default_factory=dict)
    rebuilds_count: int = 0
    failures_count: int = 0
    positions: Mapping[int, int] = field(default_factory=dict)
    lag_events_count: int = 0
    missing_events_count: int = 0
    catching_up_count: int = 0
    newer_records_count: int = 0
    segments_count: int = 0
    rows_count: int = 0
    disk_bytes: int = 0
    block_cache_bytes: int = 0
    write_buffer_bytes: int = 0
