"""Opens a manager's thread pools, and the lanes of all jobs that write segments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from rlm.config.load import Config
from rlm.metrics.metrics import Metrics
from rlm.policy.stream.permit import OPEN_BYTES
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import AttemptContext, AttemptKind
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.copying.copy_pace import CopyPace
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.copying.merge_lane import MergeLanes
from rlm.tasks.copying.repairs import Repairs
from rlm.tasks.copying.stream_lane import StreamLanes
from rlmm.state.offload_segments import DriverProperty
from rsm.config.choices import Backend
from rsm.config.storage import StorageConfig
from rsm.plugins.plugin import Plugin
from rsm.pulsar.driver_metadata import driver_metadata

# Each claim waits until it returns through the metadata topic. So after a start, the claims of P
# partitions take about P / _CLAIM_THREADS times as long as one claim.
_CLAIM_THREADS = 32

# Only one repair runs at a time, because copies of new segments take precedence.
_REPAIRS_AT_ONCE = 1

# Only one merge runs at a time, because all merges share one rate.
_MERGES_AT_ONCE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerLanes:
    """Represents the thread pools for long work, and the event that ends this work.

    The pools of copies, streams and merges have two threads for each job that may run at once,
    because jobs may hang in the store. Repairs run in the pool of copies. `merge_reads` runs the
    reads of merges.
    """

    copy_pool: ThreadPoolExecutor
    stream_pool: ThreadPoolExecutor
    merge_pool: ThreadPoolExecutor
    merge_reads: ThreadPoolExecutor
    expiry_pool: ThreadPoolExecutor
    claim_pool: ThreadPoolExecutor
    stopping: Event

    @classmethod
    def of_threads(cls, *, copies: int, streams: int, deletions: int) -> ManagerLanes:
        """Open pools for these numbers of concurrent copies, streams and deletions."""
        return cls(
            copy_pool=ThreadPoolExecutor(2 * copies, "copier"),
            stream_pool=ThreadPoolExecutor(2 * streams, "streamer"),
            merge_pool=ThreadPoolExecutor(2 * _MERGES_AT_ONCE, "merger"),
            merge_reads=ThreadPoolExecutor(2 * _MERGES_AT_ONCE, "merge-reads"),
            expiry_pool=ThreadPoolExecutor(deletions, "expirer"),
            claim_pool=ThreadPoolExecutor(_CLAIM_THREADS, "claims"),
            stopping=Event(),
        )

    def shut_down(self) -> None:
        """Cancel waiting jobs and accept no new ones; return at once.

        Running jobs end at their next check of `stopping`, which the caller sets.
        """
        writers = (self.copy_pool, self.stream_pool, self.merge_pool, self.merge_reads)
        for pool in (*writers, self.expiry_pool, self.claim_pool):
            pool.shutdown(wait=False, cancel_futures=True)


def open_pools(config: Config) -> ManagerLanes:
    """Open a manager's pools; `config` sets their sizes."""
    return ManagerLanes.of_threads(
        copies=config.manager.copier_thread_count,
        streams=stream_count(config),
        deletions=config.manager.expiration_thread_count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLanes:
    """Represents all lanes that write segments."""

    copies: CopyLanes
    repairs: Repairs
    streams: StreamLanes
    merges: MergeLanes


def open_segment_lanes(
    config: Config, ports: Ports, lanes: ManagerLanes, metrics: Metrics
) -> SegmentLanes:
    """Open the lanes that write segments; `config` sets their sizes and rates."""
    return SegmentLanes(
        copies=_open_copies(config, ports, lanes, metrics),
        repairs=_open_repairs(config, ports, lanes, metrics),
        streams=_open_streams(config, ports, lanes, metrics),
        merges=_open_merges(config, ports, lanes, metrics),
    )


def _open_copies(config: Config, ports: Ports, lanes: ManagerLanes, metrics: Metrics) -> CopyLanes:
    """Open the lanes that copy new segments; the settings and the pace limit running copies."""
    count = config.manager.copier_thread_count
    copy_lanes = Lanes(lanes.copy_pool, "copy", limit=count)
    metrics.copy_concurrency.set(count)
    pace: CopyPace | None = None
    if config.copying.adaptive_concurrency:
        show = metrics.copy_concurrency.set
        pace = CopyPace(ports.clock, copy_lanes, max_copies=count, on_limit=show)
    throttle = _throttle(config, ports, metrics, sharers=count)
    context = _context(config, copy_lanes, throttle, metrics, lanes.stopping)
    return CopyLanes(ports, context, pace=pace)


def _open_repairs(config: Config, ports: Ports, lanes: ManagerLanes, metrics: Metrics) -> Repairs:
    """Open the lane that copies damaged segments again: one at a time, up to the full copy rate."""
    repair_lanes = Lanes(lanes.copy_pool, "repair", limit=_REPAIRS_AT_ONCE)
    throttle = _throttle(config, ports, metrics, sharers=_REPAIRS_AT_ONCE)
    context = _context(config, repair_lanes, throttle, metrics, lanes.stopping)
    return Repairs(CopyLanes(ports, context, kind=AttemptKind.REPAIR))


def stream_count(config: Config) -> int:
    """Return how many streams may be open at once.

    Each stream occupies the memory of a part of an upload while it waits for records. If there were
    more streams than parts, a stream could wait for memory until another stream ends.
    """
    part_bytes = config.storage.part_bytes or OPEN_BYTES
    memory_bytes = config.storage.stream_memory_bytes(config.offloading.stream_buffer_bytes)
    return max(1, memory_bytes // part_bytes)


def _open_streams(
    config: Config, ports: Ports, lanes: ManagerLanes, metrics: Metrics
) -> StreamLanes:
    """Open the lanes that stream partitions; together they may use the full copy rate."""
    count = stream_count(config)
    stream_lanes = Lanes(lanes.stream_pool, "stream", limit=count)
    throttle = _throttle(config, ports, metrics, sharers=count)
    context = _context(config, stream_lanes, throttle, metrics, lanes.stopping)
    return StreamLanes(ports, context, driver_metadata=store_properties(config.storage))


def _open_merges(config: Config, ports: Ports, lanes: ManagerLanes, metrics: Metrics) -> MergeLanes:
    """Open the lane that merges streamed segments: one at a time, at a separate rate."""
    merge_lanes = Lanes(lanes.merge_pool, "merge", limit=_MERGES_AT_ONCE)
    throttle = CopyThrottle(
        ports.clock,
        bytes_per_second=config.offloading.merge_bytes_per_second,
        sharers=_MERGES_AT_ONCE,
        waited=lambda _delay_ms: None,
    )
    context = _context(config, merge_lanes, throttle, metrics, lanes.stopping)
    return MergeLanes(ports, context, executor=lanes.merge_reads)


def store_properties(storage: StorageConfig) -> tuple[DriverProperty, ...]:
    """Return the properties that locate the stored data; of a plug-in, only class and prefix."""
    backend, store = storage.backend, storage.store()
    properties = {
        "backend": backend.value if isinstance(backend, Backend) else str(backend),
        "prefix": storage.key_prefix,
        **({} if isinstance(store, Plugin) else driver_metadata(store)),
    }
    return tuple(DriverProperty(name=name, value=value) for name, value in properties.items())


def _context(
    config: Config, lanes: Lanes, throttle: CopyThrottle, metrics: Metrics, stopping: Event
) -> AttemptContext:
    return AttemptContext(
        lanes=lanes,
        metrics=metrics,
        stopping=stopping,
        throttle=throttle,
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
