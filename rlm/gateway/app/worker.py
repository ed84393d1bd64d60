"""Runs a gateway: its threads, when it accepts clients, and whether it is ready.

    facts       refreshes the view of cluster and metadata, every second
    heartbeat   registers the gateway, its address and its metadata positions
    caches      drops cached data of deleted segments
    anomalies   records the stored objects that cannot be read, every five seconds
    loop        serves the clients' connections

The gateway accepts clients only after it has read the metadata topic to its end and the cluster
has answered. While clients must not get its address, it accepts none. It then registers without
the address, so that no other gateway redirects clients to it. rlm.gateway.app.app composes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock

from rlm.broker.errors import ForeignClusterError
from rlm.tasks.leadership.heartbeat import HeartbeatWatch, ProcessState
from rlm.worker.periodic import Periodic
from rlmm.events.processes import ProcessReadiness
from rlmm.spi import Readiness
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError

_FACTS_INTERVAL_MS = 1_000
_ANOMALIES_INTERVAL_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayWork:
    """The functions of a gateway: the first three run once, the others repeatedly.

    `address_problem`: why clients must not get this gateway's address, as the last refresh found;
    None if they may. `broker_address`: the address that its broker advertises. `gateway_address`:
    this gateway's own, known after the first refresh. `has_ended`: the serving loop has ended
    unexpectedly, and the process must restart.
    """

    confirm_cluster: Callable[[], None]
    begin_metadata: Callable[[], None]
    begin_serving: Callable[[], None]
    readiness: Callable[[], Readiness]
    refresh: Callable[[], None]
    address_problem: Callable[[], str | None]
    broker_address: Callable[[], str]
    gateway_address: Callable[[], str]
    heartbeat: Callable[[ProcessState], None]
    clean_caches: Callable[[], None]
    report_anomalies: Callable[[], None]
    has_ended: Callable[[], bool]


class GatewayWorker:
    """A running gateway. Call `start` and `stop` from one thread; the rest is thread-safe."""

    def __init__(
        self,
        *,
        work: GatewayWork,
        heartbeat_interval_ms: int,
        clean_interval_ms: int,
        failed: Callable[[str, Exception], None],
        clock: Clock,
        serving: ExitStack,
        resources: ExitStack,
    ) -> None:
        """`stop` closes `serving`, the clients' connections, before `resources`."""
        self._work = work
        self._clock = clock
        self._serving = serving
        self._resources = resources
        self._facts = Periodic(
            "facts", self._step, interval_ms=_FACTS_INTERVAL_MS, failed=failed, clock=clock
        )
        self._heartbeat = Periodic(
            "heartbeat", self._beat, interval_ms=heartbeat_interval_ms, failed=failed, clock=clock
        )
        self._caches = Periodic(
            "caches", self._clean, interval_ms=clean_interval_ms, failed=failed, clock=clock
        )
        self._anomalies = Periodic(
            "anomalies",
            self._report_anomalies,
            interval_ms=_ANOMALIES_INTERVAL_MS,
            failed=failed,
            clock=clock,
        )
        self._contact = HeartbeatWatch(clock, heartbeat_interval_ms)
        self._lock = Lock()
        self._metadata_started = False
        self._serves = False
        self._address_problem: str | None = None
        self._started = False

    def start(self) -> None:
        self._started = True
        self._facts.start()
        self._heartbeat.start()
        self._caches.start()
        self._anomalies.start()

    def failure(self) -> TieredStorageError | None:
        problem = self._facts.problem()
        if isinstance(problem, ForeignClusterError):
            return problem
        if self._work.has_ended():
            return RetriableError("the loop that serves clients has ended")
        return None

    def readiness(self) -> tuple[bool, Sequence[str]]:
        reasons = self._contact.with_problems(
            self._reasons(),
            self._heartbeat.problem(),
            is_metadata_ready=self._work.readiness().ready,
        )
        return not reasons, reasons

    def warnings(self) -> Sequence[str]:
        """Return none: warnings about partitions come from their leaders' managers."""
        return ()

    def stop(self, *, timeout_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        every = (self._facts, self._heartbeat, self._caches, self._anomalies)
        for periodic in every:
            periodic.stop()
        if self._started:
            for periodic in every:
                periodic.join(deadline_ms - self._clock.monotonic_ms())
        self._serving.close()
        self._resources.close()

    def _step(self) -> None:
        if not self._metadata_started:
            self._work.confirm_cluster()
            self._work.begin_metadata()
            self._metadata_started = True
        self._require_ready()
        self._work.refresh()
        problem = self._work.address_problem()
        if problem is None and not self._is_serving():
            self._work.begin_serving()
            with self._lock:
                self._serves = True
        if problem != self._address_problem:
            self._address_problem = problem
            self._heartbeat.wake()  # other gateways redirect clients by registrations

    def _beat(self) -> None:
        """Register the gateway once it accepts clients or has an address problem; else raise."""
        problem = self._address_problem
        if problem is None and not self._is_serving():
            raise RetriableError("clients are not accepted yet")
        self._contact.begin()
        reasons = self._reasons()
        self._work.heartbeat(
            ProcessState(
                broker_address=self._work.broker_address(),
                readiness=ProcessReadiness.NOT_READY if reasons else ProcessReadiness.READY,
                unready_reasons=reasons,
                gateway_address="" if problem is not None else self._work.gateway_address(),
            )
        )
        self._contact.came_back()

    def _reasons(self) -> Sequence[str]:
        """Return why this process is not ready, without the state of its heartbeats."""
        problems = [self._address_problem, self._facts.problem()]
        reasons = [str(problem) for problem in problems if problem is not None]
        if not reasons and not self._is_serving():
            reasons = [self._work.readiness().reason or "clients are not accepted yet"]
        return tuple(dict.fromkeys(reasons))

    def _clean(self) -> None:
        if self._address_problem is None and not self._is_serving():
            raise RetriableError("clients are not accepted yet")
        self._work.clean_caches()

    def _report_anomalies(self) -> None:
        if self._is_serving():
            self._work.report_anomalies()

    def _is_serving(self) -> bool:
        with self._lock:
            return self._serves

    def _require_ready(self) -> None:
        metadata = self._work.readiness()
        if not metadata.ready:
            raise RetriableError(metadata.reason or "metadata is not ready")
