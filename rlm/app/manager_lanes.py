"""Provide what a manager's work runs on: thread pools, and lanes of copies and repairs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from rlm.config.load import Config
from rlm.metrics.metrics import Metrics
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_lane import CopyLanes, CopyLimits
from rlm.tasks.copying.copy_pace import CopyPace
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.copying.repairs import Repairs

# Each claim waits until it returns through the metadata topic. So a broker's start takes the time
# of one claim, times partitions divided by threads.
_CLAIM_THREADS = 32

# One repair at once: copies of new segments take precedence.
_REPAIRS_AT_ONCE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerLanes:
    """Represents the thread pools for long work, and the event that ends it.

    The copy pool has twice the threads of its copies, because copies may hang in the store.
    """

    copy_pool: ThreadPoolExecutor
    expiry_pool: ThreadPoolExecutor
    claim_pool: ThreadPoolExecutor
    stopping: Event

    @classmethod
    def of_threads(cls, *, copies: int, deletions: int) -> ManagerLanes:
        """Open pools for this number of concurrent copies and deletions."""
        return cls(
            copy_pool=ThreadPoolExecutor(2 * copies, "copier"),
            expiry_pool=ThreadPoolExecutor(deletions, "expirer"),
            claim_pool=ThreadPoolExecutor(_CLAIM_THREADS, "claims"),
            stopping=Event(),
        )

    def shut_down(self) -> None:
        """Start no further job; running jobs end at their next check of `stopping`."""
        for pool in (self.copy_pool, self.expiry_pool, self.claim_pool):
            pool.shutdown(wait=False, cancel_futures=True)


def open_copies(config: Config, ports: Ports, lanes: ManagerLanes, metrics: Metrics) -> CopyLanes:
    """Open the lanes that copy new segments; settings and pace limit how many run at once."""
    count = config.manager.copier_thread_count
    copy_lanes = Lanes(lanes.copy_pool, "copy", limit=count)
    metrics.copy_concurrency.set(count)
    pace: CopyPace | None = None
    if config.copying.adaptive_concurrency:
        show = metrics.copy_concurrency.set
        pace = CopyPace(ports.clock, copy_lanes, most=count, changed=show)
    return CopyLanes(
        ports,
        lanes=copy_lanes,
        pace=pace,
        metrics=metrics,
        stopping=lanes.stopping,
        limits=_limits(config),
        throttle=_throttle(config, ports, metrics, sharers=count),
    )


def open_repairs(config: Config, ports: Ports, lanes: ManagerLanes, metrics: Metrics) -> Repairs:
    """Open the lane that copies damaged segments: one at once, within the full copy rate."""
    copies = CopyLanes(
        ports,
        lanes=Lanes(lanes.copy_pool, "repair", limit=_REPAIRS_AT_ONCE),
        metrics=metrics,
        stopping=lanes.stopping,
        limits=_limits(config),
        throttle=_throttle(config, ports, metrics, sharers=_REPAIRS_AT_ONCE),
        repairs=True,
    )
    return Repairs(copies)


def _limits(config: Config) -> CopyLimits:
    return CopyLimits(
        attempt_timeout_ms=config.manager.copy_attempt_timeout_ms,
        first_pause_ms=config.manager.task_interval_ms,
        custom_metadata_max_bytes=config.copying.custom_metadata_max_bytes,
    )


def _throttle(config: Config, ports: Ports, metrics: Metrics, *, sharers: int) -> CopyThrottle:
    return CopyThrottle(
        ports.clock,
        bytes_per_second=config.copying.bytes_per_second,
        sharers=sharers,
        waited=metrics.remote_copy_throttle_time.inc,
    )
