"""Watches the broker's disks during an outage of the store and chooses what to shed.

**Data loss:** no tier contains shed records. While the store accepts nothing, the broker keeps all
data that is not stored. This module reports how full each disk is and when it will be full. Above
the threshold, it chooses the oldest data of the topics whose outage policy is `shed`. Data of a
disk is shed at most once per interval, because a broker removes files only at its next retention
check. Files below the local start count as removed before the broker removes them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from rlm.metrics.metrics import Metrics
from rlm.policy.candidates import lag
from rlm.policy.resources.disk_forecast import DiskSample, full_in_ms
from rlm.policy.shedding import SheddableRange, choose_shed, released_but_there_bytes, sheddable
from rlm.policy.view import PartitionView
from rlm.source.local_disks import DiskUsage, LocalDisks
from rlm.tasks.context.log_once import LogOnce
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_SAMPLE_COUNT = 20
_HOUR_MS = 3_600_000
_SPANS = ((_HOUR_MS, "within an hour"), (24 * _HOUR_MS, "within a day"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageLimits:
    """Represents the disk usage above which data is shed, and the shortest time between sheds."""

    disk_threshold_percent: int = 85
    shed_interval_ms: int = 360_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedDecision:
    """Represents the offset below which a partition's data is shed, and the rule and its values."""

    offset: int
    rule: str


@dataclass(slots=True)
class _Disk:
    usage: DiskUsage
    released_bytes: int = 0
    lag_bytes: int = 0
    sheddable: list[SheddableRange] = field(default_factory=list)


class OutageWatch:
    """Watches disks: each cycle calls `see` per partition, then `choose` once. Not thread-safe.

    Memory: the sheddable ranges during an outage, and up to 20 samples of each disk.
    """

    def __init__(
        self, disks: LocalDisks, clock: Clock, *, limits: OutageLimits, metrics: Metrics
    ) -> None:
        self._disks = disks
        self._clock = clock
        self._limits = limits
        self._metrics = metrics
        self._seen: dict[str, _Disk] = {}
        self._samples: dict[str, deque[DiskSample]] = {}
        self._shed_at_ms: dict[str, int] = {}
        self._log_once = LogOnce()

    def see(self, view: PartitionView) -> None:
        """Add a led partition to the state of its disk, unless the disk's usage is not known."""
        try:
            usage = self._disks.usage(view.topic_id_partition)
        except TieredStorageError as error:
            _log.debug(LogLine("cannot read the usage of a disk", error=error))
            return
        disk = self._seen.setdefault(usage.name, _Disk(usage))
        disk.released_bytes += released_but_there_bytes(view)
        if view.has_store_outage:
            disk.lag_bytes += lag(view).bytes
        found = sheddable(view)
        if found is not None:
            disk.sheddable.append(found)

    def choose(self) -> Mapping[TopicIdPartition, ShedDecision]:
        """Update the disk metrics, log the outage, and return what to shed now."""
        chosen: dict[TopicIdPartition, ShedDecision] = {}
        for disk in self._seen.values():
            self._record_usage(disk)
            chosen.update(self._shed_of(disk))
        self._seen.clear()
        return chosen

    def _record_usage(self, disk: _Disk) -> None:
        usage = disk.usage
        samples = self._samples.setdefault(usage.name, deque(maxlen=_SAMPLE_COUNT))
        samples.append(DiskSample(self._clock.monotonic_ms(), usage.used_bytes))
        left_ms = full_in_ms(samples, usage.total_bytes)
        self._metrics.local_disk_used_ratio.labels(usage.name).set(
            usage.used_bytes / usage.total_bytes
        )
        self._metrics.local_disk_seconds_until_full.labels(usage.name).set(
            float("inf") if left_ms is None else left_ms / 1000
        )
        if not disk.lag_bytes:
            if self._log_once.clear(usage.name):
                _log.info(LogLine("the store accepts data again", disk=usage.name))
            return
        spans = (words for limit_ms, words in _SPANS if left_ms is not None and left_ms < limit_ms)
        words = next(islice(spans, 1), "not soon")
        if self._log_once.changed(usage.name, words):
            fields = {
                "disk": usage.name,
                "lag_bytes": disk.lag_bytes,
                "used_percent": usage.used_bytes * 100 // usage.total_bytes,
                "full": words,
                "full_in_s": None if left_ms is None else left_ms // 1000,
            }
            _log.warning(
                LogLine("the store accepts nothing: the broker keeps unstored data", **fields)
            )

    def _shed_of(self, disk: _Disk) -> Mapping[TopicIdPartition, ShedDecision]:
        usage, limits = disk.usage, self._limits
        threshold_bytes = usage.total_bytes * limits.disk_threshold_percent // 100
        excess_bytes = usage.used_bytes - disk.released_bytes - threshold_bytes
        now_ms = self._clock.monotonic_ms()
        shed_at_ms = self._shed_at_ms.get(usage.name)
        too_soon = shed_at_ms is not None and now_ms < shed_at_ms + limits.shed_interval_ms
        if excess_bytes <= 0 or too_soon or not disk.sheddable:
            return {}
        self._shed_at_ms[usage.name] = now_ms
        rule = (
            f"outage policy shed: disk={usage.name} used_bytes={usage.used_bytes} "
            f"released_bytes={disk.released_bytes} threshold_bytes={threshold_bytes}"
        )
        offsets = choose_shed(disk.sheddable, excess_bytes)
        return {tip: ShedDecision(offset=offset, rule=rule) for tip, offset in offsets.items()}
