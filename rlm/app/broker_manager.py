"""Runs the threads of one manager, and reports its readiness and its partitions.

    cycle        runs one LeaderCycle every remote.log.manager.task.interval.ms
    store        checks at the same interval that the store can be reached
    removal      deletes the objects of deleted topics
    anomalies    checks the objects recorded as missing or corrupt
    scrub        checks all stored objects for damage
    streams      finds partitions whose stream is due
    originals    mirrors the originals of topics to the store
    policies     applies policy levels to topics
    access       ensures that commands have a secret and an address to reach this process
    heartbeat    registers this process; never waits for the store
    pools        run copies, repairs, streams, merges, deletions and claims

The metadata follower has its own thread. rlm.app.manager composes all of this. On stop, no new
cycle starts, and running copies end at their next check. The store and then the metadata close
last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Lock

from rlm.app.command_access import CommandAccess
from rlm.app.manager_gauges import ManagerGauges
from rlm.app.manager_lanes import ManagerLanes
from rlm.broker.errors import ForeignClusterError
from rlm.broker.spi import Broker
from rlm.metrics.metrics import Metrics
from rlm.policy.blocked import Blocked
from rlm.policy.plan import plan
from rlm.policy.share_groups import SHARE_GROUP_REASONS
from rlm.rest.signed_api import Authority
from rlm.status.document import PartitionReport
from rlm.status.explanation import OffsetExplanation, local_copy, offset_location
from rlm.status.failures import damaged_objects_warnings, failing_reasons
from rlm.status.retention_preview import RetentionPreview, retention_preview
from rlm.tasks.context.store_witness import WrongStoreError
from rlm.tasks.cycle.leader import LeaderCycle
from rlm.tasks.cycle.partition_views import CycleOutlook, PartitionViews
from rlm.tasks.deleting.streamed_deletion import StreamedDeletion
from rlm.tasks.leadership.heartbeat import (
    SIGN_OFF_MS,
    STOPPED,
    Heartbeat,
    HeartbeatWatch,
    ProcessState,
)
from rlm.topics.retention_guard import RetentionKeeper
from rlm.worker.periodic import Periodic, Step
from rlmm.events.registration import ProcessReadiness
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_READY_WAIT_MS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLoop:
    """Represents work that the thread `name` repeats while the store can be used."""

    name: str
    work: Step
    interval_ms: int


class BrokerManager:
    """Represents one manager. One thread calls `start` and `stop`; the rest is thread-safe."""

    def __init__(  # noqa: PLR0913 - one for each part of the work
        self,
        *,
        broker: Broker,
        metadata: TopicBasedRemoteLogMetadataManager,
        store_check: Step,
        retention: RetentionKeeper,
        cycle: LeaderCycle,
        views: PartitionViews,
        deletions: StreamedDeletion,
        store_loops: Sequence[StoreLoop],
        heartbeat: Heartbeat,
        access: CommandAccess,
        gauges: ManagerGauges,
        lanes: ManagerLanes,
        cycle_interval_ms: int,
        heartbeat_interval_ms: int,
        metrics: Metrics,
        clock: Clock,
        resources: ExitStack,
    ) -> None:
        """Own `lanes` and `resources`: `stop` ends the jobs of the lanes, and closes both."""
        self._broker = broker
        self._metadata = metadata
        self._store_check = store_check
        self._retention = retention
        self._cycle = cycle
        self._views = views
        self._deletions = deletions
        self._heartbeat = heartbeat
        self._access = access
        self._gauges = gauges
        self._lanes = lanes
        self._metrics = metrics
        self._clock = clock
        self._resources = resources
        self._reports: tuple[PartitionReport, ...] = ()
        self._lock = Lock()
        self._contact = HeartbeatWatch(clock, heartbeat_interval_ms)
        self._cycle_loop = self._loop("cycle", self._step, cycle_interval_ms)
        self._store_loop = self._loop("store", self._check_store, cycle_interval_ms)
        self._heartbeat_loop = self._loop("heartbeat", self._beat, heartbeat_interval_ms)
        self._loops = (
            self._store_loop,
            self._cycle_loop,
            *(
                self._loop(each.name, partial(self._step_on_store, each.work), each.interval_ms)
                for each in store_loops
            ),
            self._loop("access", self._refresh_access, heartbeat_interval_ms),
            self._heartbeat_loop,
        )
        self._started = False
        self._signs_off = Event()
        self._is_registered = False
        self._metadata_started = Event()
        self._is_address_decided = Event()
        self._knows_store = Event()

    def start(self) -> None:
        self._started = True
        for loop in self._loops:
            loop.start()

    def failure(self) -> TieredStorageError | None:
        problem = self._cycle_loop.problem()
        return problem if isinstance(problem, ForeignClusterError) else None

    def is_hanging(self) -> bool:
        return self._metadata.is_hanging()

    def readiness(self) -> tuple[bool, Sequence[str]]:
        reasons = self._contact.with_problems(
            self._reasons(),
            self._heartbeat_loop.problem(),
            is_metadata_ready=self._metadata.readiness().is_ready,
        )
        return not reasons, reasons

    def warnings(self) -> Sequence[str]:
        return damaged_objects_warnings(self.partition_reports())

    @property
    def authority(self) -> Authority:
        return self._access.authority

    def partition_reports(self) -> Sequence[PartitionReport]:
        with self._lock:
            return self._reports

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        for view in self._views.of_topic(topic, partition):
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
        return [retention_preview(view, plan(view)) for view in self._views.of_topic(topic)]

    def delete_streamed(self, topic: str, partition: int) -> bool:
        is_led = self._deletions.request(topic, partition)
        if is_led:
            self._cycle_loop.wake()
        return is_led

    def run_cycle(self) -> None:
        self._cycle_loop.wake()

    def sign_off(self) -> None:
        self._signs_off.set()

    def stop(self, *, timeout_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self._lanes.stopping.set()
        others = [each for each in self._loops if each is not self._heartbeat_loop]
        for loop in others:
            loop.stop()
        self._lanes.shut_down()
        if self._started:
            for loop in others:
                loop.join(deadline_ms - self._clock.monotonic_ms())
        # This loop ends last: others count this manager as gone once it has registered as stopped.
        if self._started and self._signs_off.is_set():
            left_ms = deadline_ms - self._clock.monotonic_ms()
            self._heartbeat_loop.end(min(left_ms, SIGN_OFF_MS))
        self._heartbeat_loop.stop()
        if self._started:
            self._heartbeat_loop.join(deadline_ms - self._clock.monotonic_ms())
        self._resources.close()

    def _step(self) -> None:
        if not self._metadata_started.is_set():
            self._broker.leadership(())
            self._metadata.start()
            self._metadata_started.set()
        self._require_ready()
        retention = self._retention.step()
        outlook = CycleOutlook(
            untierable=retention.untierable, is_store_reachable=self._store_loop.problem() is None
        )
        try:
            reports = self._cycle.step(outlook)
        except WrongStoreError:
            self._knows_store.clear()
            raise
        with self._lock:
            before, self._reports = self._reports, reports
        if outlook.is_store_reachable:
            self._knows_store.set()
        self._gauges.show(before, reports)

    def _reasons(self) -> Sequence[str]:
        """Return why this process is not ready, except for problems with its heartbeat."""
        problems = [each.problem() for each in self._loops if each is not self._heartbeat_loop]
        reasons = [str(problem) for problem in problems if problem is not None]
        with self._lock:
            reasons.extend(sorted({each.problem for each in self._reports if each.problem}))
            reasons.extend(failing_reasons(self._reports))
        metadata = self._metadata.readiness()
        if not reasons and not metadata.is_ready:
            reasons = [metadata.reason]
        if (problem := self._access.address.problem) is not None:
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
            self._store_check.step()
        except TieredStorageError:
            accessible.set(0)
            raise
        accessible.set(1)

    def _refresh_access(self) -> None:
        self._require_ready()
        address = self._access.address
        before = (address.http_address, address.broker_address)
        self._access.refresh()
        is_first = not self._is_address_decided.is_set()
        self._is_address_decided.set()
        if is_first or before != (address.http_address, address.broker_address):
            self._heartbeat_loop.wake()

    def _beat(self) -> None:
        if self._signs_off.is_set():
            if self._is_registered:
                self._heartbeat.step(STOPPED)
            return
        self._require_ready()
        if not self._is_address_decided.is_set():
            return  # The thread `access` reports why, and wakes this thread after the decision.
        self._contact.begin()
        address = self._access.address
        reasons = self._reasons()
        self._heartbeat.step(
            ProcessState(
                http_address=address.http_address,
                broker_address=address.broker_address,
                readiness=ProcessReadiness.NOT_READY if reasons else ProcessReadiness.READY,
                unready_reasons=reasons,
            )
        )
        self._is_registered = True
        self._contact.record_heartbeat()

    def _step_on_store(self, work: Step) -> None:
        self._require_ready()
        if self._is_store_usable():
            work.step()

    def _is_store_usable(self) -> bool:
        """Return whether the store answers and a cycle succeeded since the last WrongStoreError."""
        return self._knows_store.is_set() and self._store_loop.problem() is None

    def _require_ready(self) -> None:
        """Wait a few seconds for the metadata; raise RetriableError if it is still not ready."""
        if not self._metadata_started.wait(_READY_WAIT_MS / 1000):
            raise RetriableError("this process has not reached the cluster yet")
        metadata = self._metadata.wait_ready(_READY_WAIT_MS)
        if not metadata.is_ready:
            raise RetriableError(metadata.reason or "the metadata is not ready")

    def _loop(self, name: str, step: Callable[[], None], interval_ms: int) -> Periodic:
        return Periodic(
            name,
            step,
            interval_ms=interval_ms,
            failed=self._count_failure,
            clock=self._clock,
        )

    def _count_failure(self, task: str, error: BaseException) -> None:
        self._metrics.task_failures.labels(task, type(error).__name__).inc()
