"""The reasons why a manager is not ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from rlm.app.broker_manager import BrokerManager, StoreLoop
from rlm.app.command_access import CommandAccess
from rlm.app.manager_gauges import ManagerGauges
from rlm.app.manager_lanes import ManagerLanes
from rlm.metrics.metrics import Metrics
from rlm.policy.blocked import Blocked
from rlm.status.document import LEADER, PartitionReport
from rlm.tasks.cycle.leader import LeaderCycle
from rlm.tasks.cycle.partition_views import PartitionViews
from rlm.tasks.deleting.streamed_deletion import StreamedDeletion
from rlm.tasks.leadership.heartbeat import STOPPED, Heartbeat, ProcessState
from rlm.topics.retention_guard import RetentionKeeper, RetentionReport
from rlm.worker.periodic import Step
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.spi import Readiness
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.fakes.broker import MemoryBroker
from tests.fakes.clock import FakeClock
from tests.services.waiting import wait_until
from tests.unit.rlm.app.no_copies import NoCopies

BEAT_MS = 5_000
FAILING = PartitionReport(
    topic_id_partition=TopicIdPartition(topic_id=UUID(int=7), topic="orders", partition=0),
    role=LEADER,
    leader_epoch=0,
    is_claimed=True,
    copy_blocked=Blocked(
        reason="failing", values={"attempts": 2, "cause": "no space left on device", "error": "x"}
    ),
)


def work(step: Callable[[], object]) -> Step:
    return cast("Step", SimpleNamespace(step=step))


class Manager:
    """A manager whose cycles take no time. Its heartbeats come back while `answers` is set."""

    def __init__(self, *reports: PartitionReport, beat_ms: int = BEAT_MS) -> None:
        """Its address is known while `is_address_known` is set; a cycle returns these reports."""
        self.clock = FakeClock()
        self.metadata = Readiness(is_ready=True)
        self.is_address_known = Event()
        self.is_address_known.set()
        self.refresh_count = self.beat_count = 0
        self.refresh_error: RetriableError | None = None
        self.last_beat: ProcessState | None = None
        self.answers, self.beats, self.cycled = Event(), Event(), Event()
        self._reports = reports
        self.scrub_count = 0
        self.address = address = SimpleNamespace(problem=None, http_address="", broker_address="")
        access = SimpleNamespace(address=address, refresh=self._refresh)
        metadata = SimpleNamespace(
            start=lambda: None,
            readiness=lambda: self.metadata,
            wait_ready=lambda _timeout_ms: self.metadata,
        )
        metrics = Metrics(CollectorRegistry())
        self.manager = BrokerManager(
            broker=MemoryBroker(1, {}),
            metadata=cast("TopicBasedRemoteLogMetadataManager", metadata),
            store_check=work(lambda: None),
            retention=cast("RetentionKeeper", work(RetentionReport)),
            cycle=cast("LeaderCycle", SimpleNamespace(step=lambda _: self._cycle())),
            views=cast("PartitionViews", SimpleNamespace()),
            deletions=cast("StreamedDeletion", SimpleNamespace()),
            store_loops=(StoreLoop(name="scrub", work=work(self._scrub), interval_ms=1_000),),
            heartbeat=cast("Heartbeat", SimpleNamespace(step=self._beat)),
            access=cast("CommandAccess", access),
            gauges=ManagerGauges(metrics, NoCopies(), NoCopies(), NoCopies()),
            lanes=ManagerLanes.of_threads(copies=1, streams=1, deletions=1),
            cycle_interval_ms=3_600_000,
            heartbeat_interval_ms=beat_ms,
            metrics=metrics,
            clock=self.clock,
            resources=ExitStack(),
        )

    def _cycle(self) -> Sequence[PartitionReport]:
        self.cycled.set()
        return self._reports

    def _scrub(self) -> None:
        self.scrub_count += 1

    def _refresh(self) -> None:
        self.refresh_count += 1
        assert self.is_address_known.wait(60)
        if self.refresh_error is not None:
            raise self.refresh_error

    def _beat(self, state: ProcessState) -> None:
        self.beat_count += 1
        self.last_beat = state
        self.beats.set()
        assert self.answers.wait(60)


def test_readiness_when_heartbeats_do_not_come_back_then_the_cluster_cannot_be_reached() -> None:
    """Scenario 119: also while the manager still waits for the answer to its first write."""
    host = Manager()
    host.manager.start()
    assert host.beats.wait(30)
    before = host.manager.readiness()
    host.clock.advance(3 * BEAT_MS + 1)
    cut_off = host.manager.readiness()

    host.answers.set()
    wait_until(lambda: host.manager.readiness()[0], describe="ready again")
    host.manager.stop(timeout_ms=30_000)

    assert before == (True, ())
    assert not cut_off[0]
    assert cut_off[1][0].startswith("the cluster cannot be reached: no heartbeat has come back")


@pytest.mark.parametrize("was_asked", [True, False])
def test_manager_when_it_stops_then_registers_as_stopped_only_if_it_was_asked_to(
    was_asked: bool,
) -> None:
    host = Manager()
    host.answers.set()
    host.manager.start()
    assert host.beats.wait(30)
    wait_until(lambda: host.manager.readiness()[0], describe="ready")
    if was_asked:
        host.manager.sign_off()

    host.manager.stop(timeout_ms=30_000)

    assert (host.last_beat == STOPPED) is was_asked


def test_readiness_when_the_metadata_cannot_be_used_here_then_that_is_the_reason() -> None:
    """A full disk also prevents heartbeats, which does not mean that the cluster is unreachable."""
    host = Manager(beat_ms=1)
    host.answers.set()
    host.manager.start()
    assert host.beats.wait(30)
    host.metadata = replace(host.metadata, is_ready=False, reason="no space left on device")
    wait_until(
        lambda: not host.manager.readiness()[0], describe="the heartbeat finds the full disk"
    )
    host.clock.advance(20_000)
    ready, reasons = host.manager.readiness()
    host.manager.stop(timeout_ms=30_000)

    assert not ready
    assert "no space left on device" in reasons[0]
    assert reasons[-1] == "no heartbeat has come back through the metadata topic for 20 s"
    assert len(reasons) == 2


def test_readiness_when_the_address_cannot_be_bound_then_that_is_the_only_reason() -> None:
    host = Manager()
    host.refresh_error = RetriableError("the HTTP API cannot listen")
    host.manager.start()
    wait_until(lambda: not host.manager.readiness()[0], describe="the address is refused")
    assert host.cycled.wait(30)
    host.clock.advance(20_000)
    ready, reasons = host.manager.readiness()
    host.manager.stop(timeout_ms=30_000)

    assert (ready, reasons) == (False, ("the HTTP API cannot listen",))


def test_readiness_when_other_hosts_cannot_reach_the_address_then_names_the_setting() -> None:
    """Scenario 118: the manager works, but commands on other hosts do not reach it."""
    host = Manager()
    host.address.problem = "a loopback address (rest.listener=127.0.0.1:80)"
    host.answers.set()
    host.manager.start()
    assert host.beats.wait(30)
    assert host.cycled.wait(30)
    unready = host.manager.readiness()

    host.address.problem = None
    wait_until(lambda: host.manager.readiness()[0], describe="ready with another address")
    host.manager.stop(timeout_ms=30_000)

    assert unready == (False, ("a loopback address (rest.listener=127.0.0.1:80)",))


def test_readiness_when_there_is_another_reason_too_then_missing_heartbeats_come_after_it() -> None:
    host = Manager(FAILING)
    host.manager.start()
    assert host.beats.wait(30)
    assert host.cycled.wait(30)
    host.clock.advance(20_000)
    wait_until(lambda: len(host.manager.readiness()[1]) == 2, describe="both reasons")
    _, reasons = host.manager.readiness()
    host.answers.set()
    host.manager.stop(timeout_ms=30_000)

    assert reasons[0].startswith("copies fail")
    assert reasons[1].startswith("the cluster cannot be reached")


def test_heartbeat_when_the_address_is_asked_of_a_frozen_host_then_waits_for_none() -> None:
    """Scenario 119: a dead bootstrap host used to make healthy managers unready."""
    host = Manager(beat_ms=1)
    host.answers.set()
    host.manager.start()
    wait_until(lambda: host.beat_count > 0, describe="the first heartbeat")
    host.is_address_known.clear()
    before = host.refresh_count
    wait_until(lambda: host.refresh_count > before, describe="a refresh that does not end")
    beats = host.beat_count

    wait_until(lambda: host.beat_count >= beats + 3, describe="heartbeats meanwhile")

    host.is_address_known.set()
    host.manager.stop(timeout_ms=30_000)


def test_heartbeat_when_no_address_is_decided_yet_then_registers_nothing() -> None:
    host = Manager(beat_ms=3_600_000)
    host.answers.set()
    host.is_address_known.clear()
    host.manager.start()
    wait_until(lambda: host.refresh_count > 0, describe="the first refresh")
    assert host.cycled.wait(30)
    before = host.beat_count

    host.is_address_known.set()
    wait_until(lambda: host.beat_count == 1, describe="the heartbeat comes at once")

    host.manager.stop(timeout_ms=30_000)
    assert before == 0


def test_readiness_when_copies_fail_then_names_cause_and_number_of_partitions() -> None:
    host = Manager(FAILING)
    host.answers.set()
    host.manager.start()
    wait_until(lambda: not host.manager.readiness()[0], describe="the cycle's report")
    ready, reasons = host.manager.readiness()
    host.manager.stop(timeout_ms=30_000)

    assert not ready
    assert reasons == ("copies fail: no space left on device (1 partition)",)


def test_scrub_when_cycles_are_rare_then_continues_by_itself() -> None:
    """The scrub has a loop of its own, and does not wait for the next cycle."""
    host = Manager()
    host.answers.set()
    host.manager.start()

    wait_until(lambda: host.scrub_count >= 3, describe="three steps of the scrub")

    host.manager.stop(timeout_ms=30_000)
