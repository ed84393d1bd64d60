"""Defines the counters of the metadata topic and its cache; the process exports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataMetrics:
    """Represents counters since the process started, and current values.

    `not_ready` is the reason; it is empty if the metadata is ready. `refused_events_count` and
    `skipped_events_count` are by reason. `positions` contains the next offset to apply in each
    metadata partition. `lag_events_count` is the number of unapplied offsets below the end offsets
    that were read last. `missing_events_count` is the number of unapplied offsets below the end
    offsets at the time when following began. `catching_up_count` is the number of followed
    partitions that are not caught up. `newer_records_count` is the number of records that only a
    newer version can fold.
    `segments_count` and `rows_count` of the cache are estimates.
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
