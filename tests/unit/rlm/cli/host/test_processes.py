"""`rlm processes`: agrees with `rlm status`, and records a dead process as stopped."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.cli.host.processes import forget_process, process_lines
from rlm.status.attention import find_problems
from rlm.status.cluster_processes import cluster_processes
from rlm.status.problem import ProblemKind
from rlmm.events.registration import ProcessReadiness, registrations
from rsm.segment.errors import InvalidConfigError
from tests.containers.stack import ready_processes
from tests.unit.rlm.cli.stated_managers import Cluster

_DEAD_AFTER_MS = 3_000


def test_forget_when_the_process_is_dead_then_it_is_registered_as_stopped() -> None:
    cluster = Cluster()
    cluster.register(1, "10.0.0.1:8090")
    heartbeat_ms = registrations(cluster.metadata)[0].heartbeat_ms

    forget_process(cluster.metadata, UUID(int=1), now_ms=heartbeat_ms + _DEAD_AFTER_MS)

    (found,) = registrations(cluster.metadata)
    assert found.process.readiness is ProcessReadiness.STOPPED
    assert (found.process.broker_id, found.process.http_address) == (1, "10.0.0.1:8090")


def test_forget_when_the_process_is_live_then_refused() -> None:
    cluster = Cluster()
    cluster.register(1, "10.0.0.1:8090")
    heartbeat_ms = registrations(cluster.metadata)[0].heartbeat_ms

    with pytest.raises(InvalidConfigError, match="Stop it first"):
        forget_process(cluster.metadata, UUID(int=1), now_ms=heartbeat_ms)

    assert registrations(cluster.metadata)[0].process.readiness is ProcessReadiness.UNKNOWN


def test_forget_when_no_process_has_the_id_then_refused() -> None:
    with pytest.raises(InvalidConfigError, match="no process has this id"):
        forget_process(Cluster().metadata, UUID(int=9), now_ms=0)


def test_processes_when_the_store_is_away_then_the_manager_is_unready_as_in_the_status() -> None:
    """`rlm status` names `rlm processes` as the next command, so both must agree."""
    cluster = Cluster()
    ready, unready = (cluster.manager(each, f"10.0.0.{each}:8090") for each in (1, 2))
    reason = "the request to the store failed"
    for each in (
        replace(ready, readiness=ProcessReadiness.READY),
        replace(unready, readiness=ProcessReadiness.NOT_READY, unready_reasons=(reason,)),
    ):
        assert cluster.metadata.publish(each).accepted
    found = registrations(cluster.metadata)

    rows = cluster_processes({1: "b1:9092", 2: "b2:9092"}, found, now_ms=found[0].heartbeat_ms)
    (problem,) = find_problems((), silent_managers={}, silent_leaders={}, processes=rows)

    *others, line = (" ".join(line.split()) for line in process_lines(rows, width=None))
    assert line.endswith(f" not ready {reason}")
    assert [each for each in others if "not ready" in each] == []
    assert (problem.kind, problem.process) == (ProblemKind.NOT_READY, "manager of broker 2")
    assert problem.command == "rlm processes"
    assert ready_processes({"processes": [row.to_json() for row in rows]}) == {
        ("broker", "1"),
        ("broker", "2"),
        ("manager", "1"),
    }
