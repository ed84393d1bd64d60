"""Runs a gateway: starts its threads, accepts clients when it can, and reports its readiness.

    facts       refreshes the view of cluster and metadata, every second
    heartbeat   registers the gateway, its address and its metadata positions
    caches      drops cached data that no client can read any more
    anomalies   records missing or corrupt stored objects, every five seconds
    loop        serves the clients' connections

The gateway accepts clients only after it has read the metadata topic to its end and the cluster
has answered. While clients must not get the gateway's address, the gateway accepts no clients. It
then registers without the address, so that no other gateway redirects clients to it.
rlm.gateway.app.app builds the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from threading import Event, Lock

from rlm.broker.errors import ForeignClusterError
from rlm.gateway.app.cluster_view import LiveFacts
from rlm.gateway.endpoints.checked_routing import CheckedRouting
from rlm.gateway.listener.server import GatewayParts
from rlm.gateway.listener.server_thread import ServerThread
from rlm.tasks.leadership.heartbeat import (
    SIGN_OFF_MS,
    STOPPED,
    Heartbeat,
    HeartbeatWatch,
    ProcessState,
)
from rlm.worker.periodic import Periodic, Step
from rlmm.events.registration import ProcessReadiness
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError

_FACTS_INTERVAL_MS = 1_000
_ANOMALIES_INTERVAL_MS = 5_000


class GatewayWorker:
    """Represents a running gateway.

    Call `start` and `stop` from one thread; the rest is thread-safe.
    """

    def __init__(  # noqa: PLR0913 - one for each part of the work
        self,
        *,
        confirm_cluster: Callable[[], None],
        metadata: TopicBasedRemoteLogMetadataManager,
        facts: LiveFacts,
        route: CheckedRouting,
        server: ServerThread,
        parts: GatewayParts,
        heartbeat: Heartbeat,
        cleaner: Step,
        reporter: Step,
        heartbeat_interval_ms: int,
        clean_interval_ms: int,
        failed: Callable[[str, BaseException], None],
        clock: Clock,
        serving: ExitStack,
        resources: ExitStack,
    ) -> None:
        """`confirm_cluster` runs before the gateway writes to the cluster, and may raise.

        `server` serves clients with `parts`. `serving` closes the clients' connections; `stop`
        closes it before `resources`.
        """
        self._confirm_cluster = confirm_cluster
        self._metadata = metadata
        self._facts = facts
        self._route = route
        self._server = server
        self._parts = parts
        self._heartbeat = heartbeat
        self._cleaner = cleaner
        self._reporter = reporter
        self._clock = clock
        self._serving = serving
        self._resources = resources
        loop = partial(Periodic, failed=failed, clock=clock)
        self._facts_loop = loop("facts", self._step, interval_ms=_FACTS_INTERVAL_MS)
        self._heartbeat_loop = loop("heartbeat", self._beat, interval_ms=heartbeat_interval_ms)
        self._loops = (
            self._facts_loop,
            self._heartbeat_loop,
            loop("caches", self._clean, interval_ms=clean_interval_ms),
            loop("anomalies", self._report_anomalies, interval_ms=_ANOMALIES_INTERVAL_MS),
        )
        self._contact = HeartbeatWatch(clock, heartbeat_interval_ms)
        self._lock = Lock()
        self._metadata_started = False
        self._serves = False
        self._address_problem: str | None = None
        self._started = False
        self._signs_off = Event()
        self._is_registered = False

    def start(self) -> None:
        self._started = True
        for loop in self._loops:
            loop.start()

    def failure(self) -> TieredStorageError | None:
        problem = self._facts_loop.problem()
        if isinstance(problem, ForeignClusterError):
            return problem
        if self._server.has_ended:
            return RetriableError("cannot serve clients: the event loop has ended")
        return None

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
        """Return no warnings: the leaders' managers report those about partitions."""
        return ()

    def sign_off(self) -> None:
        self._signs_off.set()

    def stop(self, *, timeout_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        others = [each for each in self._loops if each is not self._heartbeat_loop]
        for loop in others:
            loop.stop()
        if self._started:
            for loop in others:
                loop.join(deadline_ms - self._clock.monotonic_ms())
        self._serving.close()
        # The heartbeat ends last, because other processes treat a stopped gateway as gone at once.
        if self._started and self._signs_off.is_set():
            left_ms = deadline_ms - self._clock.monotonic_ms()
            self._heartbeat_loop.end(min(left_ms, SIGN_OFF_MS))
        self._heartbeat_loop.stop()
        if self._started:
            self._heartbeat_loop.join(deadline_ms - self._clock.monotonic_ms())
        self._resources.close()

    def _step(self) -> None:
        if not self._metadata_started:
            self._confirm_cluster()
            self._metadata.start()
            self._metadata_started = True
        self._require_ready()
        self._facts.refresh()
        problem = self._route.problem
        if problem is None and not self._is_serving():
            self._server.start(self._parts)
            with self._lock:
                self._serves = True
        if problem != self._address_problem:
            self._address_problem = problem
            self._heartbeat_loop.wake()  # Other gateways redirect clients by registrations.

    def _beat(self) -> None:
        """Register the gateway; after `sign_off`, register it as stopped if it was registered.

        Raises RetriableError while the gateway neither accepts clients nor has an address problem.
        """
        if self._signs_off.is_set():
            if self._is_registered:
                self._heartbeat.step(STOPPED)
            return
        problem = self._address_problem
        if problem is None and not self._is_serving():
            raise RetriableError("clients are not accepted yet")
        self._contact.begin()
        reasons = self._reasons()
        self._heartbeat.step(
            ProcessState(
                http_address=self._route.http_address,
                broker_address=self._route.broker_address,
                readiness=ProcessReadiness.NOT_READY if reasons else ProcessReadiness.READY,
                unready_reasons=reasons,
                gateway_address="" if problem is not None else self._route.address,
            )
        )
        self._is_registered = True
        self._contact.record_heartbeat()

    def _reasons(self) -> Sequence[str]:
        """Return why this process is not ready, apart from missing heartbeats."""
        problems = [self._address_problem, self._facts_loop.problem()]
        reasons = [str(problem) for problem in problems if problem is not None]
        if not reasons and not self._is_serving():
            reasons = [self._metadata.readiness().reason or "clients are not accepted yet"]
        return tuple(dict.fromkeys(reasons))

    def _clean(self) -> None:
        if self._address_problem is None and not self._is_serving():
            raise RetriableError("clients are not accepted yet")
        self._cleaner.step()

    def _report_anomalies(self) -> None:
        if self._is_serving():
            self._reporter.step()

    def _is_serving(self) -> bool:
        with self._lock:
            return self._serves

    def _require_ready(self) -> None:
        metadata = self._metadata.readiness()
        if not metadata.is_ready:
            raise RetriableError(metadata.reason or "the metadata is not ready")
