"""Run the threads of one manager, and report its readiness and its partitions.

    cycle        runs one LeaderCycle every remote.log.manager.task.interval.ms
    store        checks at the same interval that the store can be reached
    removal      deletes the objects of deleted topics
    anomalies    checks the objects that are recorded as missing or corrupt
    scrub        checks all stored objects for damage
    originals    mirrors the originals of topics to the store
    access       decides at which address commands reach this process
    heartbeat    registers this process; waits only for the brokers of the metadata topic
    two pools    run copies and deletions; settings give their sizes

The metadata follower has its own thread. rlm.app.manager composes all of this. On stop, no new
cycle starts and running copies end at their next check. The metadata and the store close last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Event, Lock

from rlm.app.command_access import CommandAccess
from rlm.app.manager_gauges import ManagerGauges
from rlm.broker.errors import ForeignClusterError
from rlm.metrics.metrics import Metrics
from rlm.policy.blocked import Blocked
from rlm.policy.plan import plan
from rlm.policy.share_groups import SHARE_GROUP_REASONS
from rlm.policy.view import PartitionView
from rlm.rest.signed_api import Authority
from rlm.status.damaged_objects import damaged_objects_warnings
from rlm.status.document import PartitionReport
from rlm.status.explanation import OffsetExplanation, local_copy, offset_location
from rlm.status.failing_copies import failing_reasons
from rlm.status.retention_preview import RetentionPreview, retention_preview
from rlm.tasks.cycle.partition_views import CycleOutlook
from rlm.tasks.cycle.store_witness import WrongStoreError
from rlm.tasks.leadership.heartbeat import HeartbeatWatch, ProcessState
from rlm.topics.retention_guard import RetentionReport
from rlm.worker.periodic import Periodic
from rlmm.events.processes import ProcessReadiness
from rlmm.spi import Readiness
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_READY_WAIT_MS = 2000

# Short: one check reads only as much as the rate has allowed since the previous check.
_SCRUB_STEP_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerWork:
    """Represents the work that a manager runs on its threads.

    `confirm_cluster` and then `begin_metadata` run once, so that nothing is created in a foreign
    cluster. The rest runs repeatedly. `await_ready` waits for the metadata, at most the given ms.
    """

    confirm_cluster: Callable[[], object]
    begin_metadata: Callable[[], None]
    readiness: Callable[[], Readiness]
    await_ready: Callable[[int], Readiness]
    check_store: Callable[[], None]
    keep_retention: Callable[[], RetentionReport]
    cycle: Callable[[CycleOutlook], Sequence[PartitionReport]]
    views: Callable[[str, int | None], Sequence[PartitionView]]
    remove_topics: Callable[[], None]
    mirror_originals: Callable[[], None]
    check_anomalies: Callable[[], None]
    scrub: Callable[[], None]
    heartbeat: Callable[[ProcessState], None]
    access: CommandAccess
    gauges: ManagerGauges


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerPace:
    """Represents the intervals at which the manager repeats its work."""

    cycle_interval_ms: int
    heartbeat_interval_ms: int


class BrokerManager:
    """Represents one manager. One thread calls `start` and `stop`; the rest is thread-safe."""

    def __init__(
        self,
        *,
        work: ManagerWork,
        pace: ManagerPace,
        metrics: Metrics,
        clock: Clock,
        pools: Sequence[ThreadPoolExecutor],
        stopping: Event,
        resources: ExitStack,
    ) -> None:
        """`stopping` ends copies; `stop` closes `resources` last."""
        self._work = work
        self._metrics = metrics
        self._clock = clock
        self._pools = pools
        self._stopping = stopping
        self._resources = resources
        self._reports: tuple[PartitionReport, ...] = ()
        self._lock = Lock()
        self._cycle = self._periodic("cycle", self._step, pace.cycle_interval_ms)
        self._store = self._periodic("store", self._check_store, pace.cycle_interval_ms)
        self._access = self._periodic("access", self._refresh_access, pace.heartbeat_interval_ms)
        self._heartbeat = self._periodic("heartbeat", self._beat, pace.heartbeat_interval_ms)
        self._contact = HeartbeatWatch(clock, pace.heartbeat_interval_ms)
        self._removal = self._periodic("removal", self._remove, pace.cycle_interval_ms)
        self._originals = self._periodic("originals", self._mirror, pace.cycle_interval_ms)
        self._anomalies = self._periodic("anomalies", self._check_anomalies, pace.cycle_interval_ms)
        self._scrub = self._periodic("scrub", self._step_scrub, _SCRUB_STEP_MS)
        self._all = (
            self._store,
            self._cycle,
            self._removal,
            self._originals,
            self._anomalies,
            self._scrub,
            self._access,
            self._heartbeat,
        )
        self._started = False
        self._metadata_started = Event()
        self._is_address_decided = Event()
        self._knows_store = Event()

    def start(self) -> None:
        self._started = True
        for periodic in self._all:
            periodic.start()

    def failure(self) -> TieredStorageError | None:
        problem = self._cycle.problem()
        return problem if isinstance(problem, ForeignClusterError) else None

    def readiness(self) -> tuple[bool, Sequence[str]]:
        reasons = self._contact.with_problems(
            self._reasons(),
            self._heartbeat.problem(),
            is_metadata_ready=self._work.readiness().ready,
        )
        return not reasons, reasons

    def warnings(self) -> Sequence[str]:
        return damaged_objects_warnings(self.partition_reports())

    @property
    def authority(self) -> Authority:
        return self._work.access.authority

    def partition_reports(self) -> Sequence[PartitionReport]:
        with self._lock:
            return self._reports

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        for view in self._work.views(topic, partition):
            found = offset_location(
                offset,
                state=view.state,
                lineage=view.lineage,
                offsets=view.offsets,
                segments=view.segments,
            )
            copy = local_copy(view, offset, self._blocked_by_share_groups(view.topic_id_partition))
            return replace(found, local_copy=copy)
        return None

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        return [retention_preview(view, plan(view)) for view in self._work.views(topic, None)]

    def run_cycle(self) -> None:
        self._cycle.wake()

    def stop(self, *, timeout_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self._stopping.set()
        for periodic in self._all:
            periodic.stop()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        if self._started:
            for periodic in self._all:
                periodic.join(deadline_ms - self._clock.monotonic_ms())
        self._resources.close()

    def _step(self) -> None:
        if not self._metadata_started.is_set():
            self._work.confirm_cluster()
            self._work.begin_metadata()
            self._metadata_started.set()
        self._require_ready()
        retention = self._work.keep_retention()
        outlook = CycleOutlook(
            untierable=retention.untierable, store_reachable=self._store.problem() is None
        )
        try:
            reports = tuple(self._work.cycle(outlook))
        except WrongStoreError:
            self._knows_store.clear()
            raise
        with self._lock:
            before, self._reports = self._reports, reports
        if outlook.store_reachable:
            self._knows_store.set()
        self._work.gauges.show(before, reports)

    def _reasons(self) -> Sequence[str]:
        """Return why this process is not ready, except for its heartbeats."""
        problems = [each.problem() for each in self._all if each is not self._heartbeat]
        reasons = [str(problem) for problem in problems if problem is not None]
        with self._lock:
            reasons.extend(sorted({each.problem for each in self._reports if each.problem}))
            reasons.extend(failing_reasons(self._reports))
        metadata = self._work.readiness()
        if not reasons and not metadata.ready:
            reasons = [metadata.reason]
        if (problem := self._work.access.address.problem) is not None:
            reasons.append(problem)
        return tuple(dict.fromkeys(reasons))

    def _blocked_by_share_groups(self, tip: TopicIdPartition) -> Blocked | None:
        """Return why share groups blocked a trim in the last cycle; None if they did not."""
        with self._lock:
            blocked = [
                each.trim_blocked for each in self._reports if each.topic_id_partition == tip
            ]
        return next((h for h in blocked if h is not None and h.reason in SHARE_GROUP_REASONS), None)

    def _check_store(self) -> None:
        accessible = self._metrics.bucket_accessible.labels("store")
        try:
            self._work.check_store()
        except TieredStorageError:
            accessible.set(0)
            raise
        accessible.set(1)

    def _refresh_access(self) -> None:
        self._require_ready()
        address = self._work.access.address
        before = (address.http_address, address.broker_address)
        self._work.access.refresh()
        is_first = not self._is_address_decided.is_set()
        self._is_address_decided.set()
        if is_first or before != (address.http_address, address.broker_address):
            self._heartbeat.wake()

    def _beat(self) -> None:
        self._require_ready()
        if not self._is_address_decided.is_set():
            return  # `access` reports the problem, and wakes this thread once it has an address
        self._contact.begin()
        address = self._work.access.address
        reasons = self._reasons()
        self._work.heartbeat(
            ProcessState(
                http_address=address.http_address,
                broker_address=address.broker_address,
                readiness=ProcessReadiness.NOT_READY if reasons else ProcessReadiness.READY,
                unready_reasons=reasons,
            )
        )
        self._contact.came_back()

    def _remove(self) -> None:
        self._require_ready()
        if self._is_store_usable():
            self._work.remove_topics()

    def _mirror(self) -> None:
        self._require_ready()
        if self._is_store_usable():
            self._work.mirror_originals()

    def _check_anomalies(self) -> None:
        self._require_ready()
        if self._is_store_usable():
            self._work.check_anomalies()

    def _step_scrub(self) -> None:
        self._require_ready()
        if self._is_store_usable():
            self._work.scrub()

    def _is_store_usable(self) -> bool:
        """Return whether the store answers, and the last cycle found in it what must be there."""
        return self._knows_store.is_set() and self._store.problem() is None

    def _require_ready(self) -> None:
        """Wait a moment for the metadata, which a start delays; then raise RetriableError."""
        if not self._metadata_started.wait(_READY_WAIT_MS / 1000):
            raise RetriableError("the cluster has not been reached yet")
        metadata = self._work.await_ready(_READY_WAIT_MS)
        if not metadata.ready:
            raise RetriableError(metadata.reason or "metadata is not ready")

    def _periodic(self, name: str, step: Callable[[], None], interval_ms: int) -> Periodic:
        return Periodic(
            name,
            step,
            interval_ms=interval_ms,
            failed=self._count_failure,
            clock=self._clock,
        )

    def _count_failure(self, task: str, error: Exception) -> None:
        self._metrics.task_failures.labels(task, type(error).__name__).inc()
