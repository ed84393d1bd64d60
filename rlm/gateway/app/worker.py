"""The gateway while it runs: when it accepts clients, its threads, whether it is ready.

    facts       what sessions know beside their bytes, every second
    heartbeat   registers this gateway, with where it is found and what metadata it has applied
    caches      drops what was read of segments that are gone
    anomalies   puts on record which stored objects cannot be read, every five seconds
    loop        the clients' connections

No client is accepted before the metadata was followed to its end and the cluster was heard, nor
while clients must not be given this gateway's address: the gateway then registers without it, so
that no other gateway leads clients here. Composed by rlm.gateway.app.app.
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
    """What a gateway does: the first three once, the rest over and over.

    `address_problem`: why clients must not be given this gateway's address, as of the last refresh;
    None if they may. `broker_address`: what its broker advertises. `gateway_address`: this
    gateway's own, known after the first refresh.
    `has_ended`: serving has come to an end by itself, which only a new process mends.
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
    """One gateway. `start` and `stop` are one thread's, everything else is thread-safe."""

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
        """`serving` is closed first: the clients' connections; `resources` last."""
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
        """None: the leaders' managers look after the partitions."""
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
            self._heartbeat.wake()  # other gateways lead clients by what is registered

    def _beat(self) -> None:
        """A gateway that accepts nobody yet is not one to lead clients to."""
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
        """Why this process is not ready, except for its heartbeats."""
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
