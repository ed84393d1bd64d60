"""A gateway of several processes at one address: all serve, and only a dead one is restarted."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import httpx
import psutil
import pytest

from rlm.worker.recent_log import logged_processes, recent_log
from rlmm.events.registration import ProcessRegistered, ProcessRole, registrations
from rlmm.spi import RemoteLogMetadataManager
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.tiered_log import TieredLog
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CLIENT_COUNT = 60
_DEADLINE_S = 60.0


@pytest.fixture
def gateway(host: BrokerHost) -> str:
    """The address of the gateway's two processes."""
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}", "gateway.workers": "2"})
    return f"127.0.0.1:{port}"


def _workers(process: ServiceProcess) -> list[psutil.Process]:
    children: list[psutil.Process] = psutil.Process(process.pid).children()
    return [child for child in children if "--worker" in child.cmdline()]


def _two_workers(
    process: ServiceProcess, *, without: psutil.Process | None = None
) -> list[psutil.Process]:
    """Wait until two workers run that are not `without`; return them."""
    return wait_until(
        lambda: found if len(found := _workers(process)) == 2 and without not in found else [],
        _DEADLINE_S,
        "both run",
        despite=psutil.NoSuchProcess,
    )


def _registered(metadata: RemoteLogMetadataManager) -> list[ProcessRegistered]:
    found = (registration.process for registration in registrations(metadata))
    return [process for process in found if process.role is ProcessRole.GATEWAY]


def _connected(host: BrokerHost) -> list[float]:
    """Return the number of clients of each process."""
    found = host.metrics("rlm_gateway_connections")
    return [found.get(f"gateway-{worker}", 0.0) for worker in (1, 2)]


def _all_connected(host: BrokerHost) -> list[float]:
    """Return these numbers once all idle clients are accepted."""
    return wait_until(
        lambda: found if sum(found := _connected(host)) >= _CLIENT_COUNT else [],
        _DEADLINE_S,
        "all are accepted",
        despite=httpx.HTTPError,
    )


@contextmanager
def _idle_clients(address: str) -> Iterator[None]:
    host, _, port = address.rpartition(":")
    with ExitStack() as stack:
        for _ in range(_CLIENT_COUNT):
            stack.enter_context(closing(socket.create_connection((host, int(port)))))
        yield


def test_workers_when_one_is_killed_then_the_other_serves_and_it_comes_back(
    host: BrokerHost, log: TieredLog, gateway: str
) -> None:
    """R15: each worker reports its position in the metadata, so that trims wait for all.

    Each worker has its own log file; a restarted worker continues it.
    """
    with host.metadata() as metadata:
        log.set_policy(metadata)
        log.produce(3)
        with host.running() as process:
            host.wait_ready()
            log.wait_tiered(metadata)
            offsets = read_all(gateway, log.topic)
            registered = _registered(metadata)
            assert len(registered) == 2
            assert {each.gateway_address for each in registered} == {gateway}
            assert all(each.applied for each in registered)
            with _idle_clients(gateway):
                assert min(_all_connected(host)) >= _CLIENT_COUNT / 10
            killed, other = _two_workers(process)

            killed.kill()

            assert read_all(gateway, log.topic) == offsets
            assert other in _two_workers(process, without=killed)
            host.wait_ready()
            assert other in _two_workers(process, without=killed)
            assert len(_registered(metadata)) == 2

    names = ("gateway-1", "gateway-2")
    logs = [recent_log(host.state_dir, name) for name in names]
    assert logged_processes(host.state_dir) == (*names, "manager", "supervisor")
    assert sorted(lines.count(b"worker started") for lines in logs) == [1, 2]
