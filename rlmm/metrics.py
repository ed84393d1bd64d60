"""The counters of the metadata topic and its cache as plain numbers; the process exports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataMetrics:
    """Counters since the process started, and current values.

    `refused_events_count` and `skipped_events_count` are by reason. `positions` are next offsets by
    metadata partition. `lag_events_count` counts unapplied records up to the last fetched ends,
    `missing_events_count` up to the ends at the start of following. `newer_records_count` counts
    records that only a newer version can fold. `not_ready` is the reason, empty if ready.
    `catching_up_count` counts followed partitions that are not caught up. `segments_count` and
    `rows_count` of the cache are estimates.
    """

    is_ready: bool
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
