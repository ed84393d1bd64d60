"""`rlm processes --forget`: a dead process is recorded as stopped."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.cli.host.processes import forget_process
from rlmm.events.registration import ProcessReadiness
from rsm.segment.errors import InvalidConfigError
from tests.unit.rlm.cli.stated_managers import Cluster

_DEAD_AFTER_MS = 3_000


def test_forget_when_the_process_is_dead_then_it_is_registered_as_stopped() -> None:
    cluster = Cluster()
    cluster.register(1, "10.0.0.1:8090")
    heartbeat_ms = cluster.metadata.registrations()[0].heartbeat_ms

    forget_process(cluster.metadata, UUID(int=1), now_ms=heartbeat_ms + _DEAD_AFTER_MS)

    (found,) = cluster.metadata.registrations()
    assert found.process.readiness is ProcessReadiness.STOPPED
    assert (found.process.broker_id, found.process.http_address) == (1, "10.0.0.1:8090")


def test_forget_when_the_process_is_live_then_refused() -> None:
    cluster = Cluster()
    cluster.register(1, "10.0.0.1:8090")
    heartbeat_ms = cluster.metadata.registrations()[0].heartbeat_ms

    with pytest.raises(InvalidConfigError, match="Stop it first"):
        forget_process(cluster.metadata, UUID(int=1), now_ms=heartbeat_ms)

    assert cluster.metadata.registrations()[0].process.readiness is ProcessReadiness.UNKNOWN


def test_forget_when_no_process_has_the_id_then_refused() -> None:
    with pytest.raises(InvalidConfigError, match="no process has this id"):
        forget_process(Cluster().metadata, UUID(int=9), now_ms=0)
