"""When a gateway accepts clients, and which reasons it reports until then."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event
from types import SimpleNamespace
from typing import cast

import pytest

from rlm.broker.errors import ForeignClusterError
from rlm.gateway.app.cluster_view import LiveFacts
from rlm.gateway.app.worker import GatewayWorker
from rlm.gateway.endpoints.checked_routing import CheckedRouting
from rlm.gateway.listener.server import GatewayParts
from rlm.gateway.listener.server_thread import ServerThread
from rlm.tasks.leadership.heartbeat import STOPPED, Heartbeat, ProcessState
from rlm.worker.periodic import Step
from rlmm.events.registration import ProcessReadiness
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.spi import Readiness
from rsm.segment.clock import Clock
from rsm.system_clock import SystemClock
from tests.fakes.clock import FakeClock
from tests.services.waiting import wait_until

FAST_MS = 1
BEAT_MS = 50


class Gateway:
    """A worker that records its work."""

    def __init__(self, clock: Clock | None = None) -> None:
        """A heartbeat comes back while `answers` is set."""
        self.answers = Event()
        self.answers.set()
        self.done: list[str] = []
        self.metadata = Readiness(is_ready=False, reason="reading the metadata topic")
        self.is_foreign = False
        self.route = SimpleNamespace(
            problem=None,
            http_address="10.0.0.1:9465",
            broker_address="10.0.0.1:9092",
            address="10.0.0.1:19092",
        )
        self.server = SimpleNamespace(
            has_ended=False, start=lambda _parts: self.done.append("serving")
        )
        self.beats: list[ProcessState] = []
        serving, resources = ExitStack(), ExitStack()
        serving.callback(self.done.append, "connections ended")
        resources.callback(self.done.append, "resources closed")
        metadata = SimpleNamespace(
            start=lambda: self.done.append("metadata"), readiness=lambda: self.metadata
        )
        idle = cast("Step", SimpleNamespace(step=lambda: None))
        self.worker = GatewayWorker(
            confirm_cluster=self._confirm,
            metadata=cast("TopicBasedRemoteLogMetadataManager", metadata),
            facts=cast("LiveFacts", SimpleNamespace(refresh=lambda: None)),
            route=cast("CheckedRouting", self.route),
            server=cast("ServerThread", self.server),
            parts=cast("GatewayParts", None),
            heartbeat=cast("Heartbeat", SimpleNamespace(step=self._beat)),
            cleaner=idle,
            reporter=idle,
            heartbeat_interval_ms=BEAT_MS,
            clean_interval_ms=FAST_MS,
            failed=lambda _task, _error: None,
            clock=clock or SystemClock(),
            serving=serving,
            resources=resources,
        )

    def beats_with(self, readiness: ProcessReadiness) -> list[ProcessState]:
        return [each for each in self.beats if each.readiness is readiness]

    def _beat(self, state: ProcessState) -> None:
        self.done.append("heartbeat")
        self.beats.append(state)
        assert self.answers.wait(60)

    def _confirm(self) -> None:
        if self.is_foreign:
            raise ForeignClusterError("another cluster")
        self.done.append("confirmed")


def test_gateway_when_the_metadata_lags_then_accepts_no_client_and_registers_nowhere() -> None:
    """R15, scenario 33: clients must not reach a gateway that does not know what is stored."""
    gateway = Gateway()
    gateway.worker.start()
    wait_until(lambda: not gateway.worker.readiness()[0] and bool(gateway.done), describe="it runs")
    wait_until(
        lambda: "reading the metadata topic" in gateway.worker.readiness()[1],
        describe="it says what it waits for",
    )
    gateway.worker.stop(timeout_ms=5_000)

    assert gateway.done == ["confirmed", "metadata", "connections ended", "resources closed"]


def test_gateway_when_the_metadata_is_read_then_serves_and_then_registers() -> None:
    gateway = Gateway()
    gateway.metadata = Readiness(is_ready=True)
    gateway.worker.start()
    wait_until(lambda: gateway.worker.readiness() == (True, ()), describe="ready")
    wait_until(lambda: "heartbeat" in gateway.done, describe="registered")
    gateway.worker.stop(timeout_ms=5_000)

    assert gateway.done[:4] == ["confirmed", "metadata", "serving", "heartbeat"]
    assert gateway.done[-2:] == ["connections ended", "resources closed"]


def test_gateway_when_asked_to_stop_then_registers_as_stopped_after_its_connections_ended() -> None:
    gateway = Gateway()
    gateway.metadata = Readiness(is_ready=True)
    gateway.worker.start()
    wait_until(lambda: "heartbeat" in gateway.done, describe="registered")

    gateway.worker.sign_off()
    gateway.worker.stop(timeout_ms=5_000)

    assert gateway.done[-3:] == ["connections ended", "heartbeat", "resources closed"]
    assert gateway.beats[-1] == STOPPED


@pytest.mark.parametrize("was_asked", [True, False])
def test_gateway_when_it_never_registered_or_was_not_asked_then_does_not_register_as_stopped(
    was_asked: bool,
) -> None:
    gateway = Gateway()
    gateway.metadata = Readiness(is_ready=not was_asked)
    gateway.worker.start()
    wait_until(lambda: "metadata" in gateway.done, describe="it runs")
    if was_asked:
        gateway.worker.sign_off()

    gateway.worker.stop(timeout_ms=5_000)

    assert STOPPED not in gateway.beats


def test_gateway_when_the_cluster_is_a_foreign_one_then_fails_for_good() -> None:
    gateway = Gateway()
    gateway.is_foreign = True
    gateway.worker.start()
    wait_until(lambda: gateway.worker.failure() is not None, describe="failed")
    gateway.worker.stop(timeout_ms=5_000)

    assert isinstance(gateway.worker.failure(), ForeignClusterError)
    assert "metadata" not in gateway.done


def test_gateway_when_its_loop_has_ended_then_fails_so_that_it_is_started_again() -> None:
    gateway = Gateway()
    assert gateway.worker.failure() is None

    gateway.server.has_ended = True

    assert gateway.worker.failure() is not None


def test_gateway_when_its_address_must_not_be_given_out_then_serves_no_client() -> None:
    """The gateway registers without its address, so others redirect no client to it."""
    gateway = Gateway()
    gateway.metadata = Readiness(is_ready=True)
    gateway.route.problem = "a loopback address"
    gateway.worker.start()
    wait_until(lambda: bool(gateway.beats), describe="registered")
    gateway.worker.stop(timeout_ms=5_000)

    assert "serving" not in gateway.done
    assert gateway.worker.readiness() == (False, ("a loopback address",))
    assert gateway.beats[0] == ProcessState(
        http_address="10.0.0.1:9465",
        broker_address="10.0.0.1:9092",
        readiness=ProcessReadiness.NOT_READY,
        unready_reasons=("a loopback address",),
    )


def test_gateway_when_its_address_is_right_again_then_serves_and_registers_with_it() -> None:
    gateway = Gateway()
    gateway.metadata = Readiness(is_ready=True)
    gateway.route.problem = "a loopback address"
    gateway.worker.start()
    wait_until(lambda: bool(gateway.beats), describe="registered")

    gateway.route.problem = None
    wait_until(
        lambda: bool(gateway.beats_with(ProcessReadiness.READY)), describe="registered as ready"
    )
    gateway.worker.stop(timeout_ms=5_000)

    assert gateway.done.count("serving") == 1
    assert gateway.beats[-1] == ProcessState(
        http_address="10.0.0.1:9465",
        broker_address="10.0.0.1:9092",
        readiness=ProcessReadiness.READY,
        gateway_address="10.0.0.1:19092",
    )


def test_gateway_when_its_address_gets_wrong_while_it_serves_then_is_not_ready() -> None:
    gateway = Gateway()
    gateway.metadata = Readiness(is_ready=True)
    gateway.worker.start()
    wait_until(lambda: bool(gateway.beats), describe="registered")

    gateway.route.problem = "another broker's gateway has it"
    wait_until(
        lambda: bool(gateway.beats_with(ProcessReadiness.NOT_READY)),
        describe="registered as not ready",
    )
    gateway.worker.stop(timeout_ms=5_000)

    assert gateway.worker.readiness() == (False, ("another broker's gateway has it",))
    assert gateway.beats[-1].gateway_address == ""


def test_gateway_when_heartbeats_do_not_come_back_then_the_cluster_cannot_be_reached() -> None:
    """Scenario 119: after two missed round trips, although the write is still in flight."""
    clock = FakeClock()
    gateway = Gateway(clock)
    gateway.metadata = Readiness(is_ready=True)
    gateway.answers.clear()
    gateway.worker.start()
    wait_until(lambda: bool(gateway.beats), describe="the first heartbeat")
    clock.advance(3 * BEAT_MS + 1)
    ready, reasons = gateway.worker.readiness()

    gateway.answers.set()
    wait_until(lambda: gateway.worker.readiness()[0], describe="ready again")
    gateway.worker.stop(timeout_ms=5_000)

    assert not ready
    assert reasons[0].startswith("the cluster cannot be reached")
