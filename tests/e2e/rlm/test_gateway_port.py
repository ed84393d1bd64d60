"""Clients cannot connect to the port of a gateway that cannot serve, because no cluster runs."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_TIMEOUT_S = 10.0


@contextmanager
def _running(directory: Path, command: str, settings: str) -> Iterator[Path]:
    """Run `rlm COMMAND` without a cluster; yield its log."""
    for name in ("logs", "store"):
        (directory / name).mkdir()
    (directory / "logs" / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    configuration = directory / "rlm.properties"
    configuration.write_text(
        "bootstrap.servers=127.0.0.1:1\n"
        f"state.dir={directory / 'state'}\n"
        f"rsm.config.storage.filesystem.root={directory / 'store'}\n"
        f"{settings}"
    )
    log = directory / "rlm.log"
    process = ServiceProcess(
        [sys.executable, "-m", "rlm", command, "--config", str(configuration)], log_path=log
    )
    try:
        yield log
    finally:
        process.kill(children=True)


@pytest.mark.parametrize(
    ("command", "beside_broker"), [("run", True), ("gateway", True), ("gateway", False)]
)
def test_clients_when_the_gateway_runs_but_cannot_serve_then_are_refused_at_once(
    tmp_path: Path, command: str, *, beside_broker: bool
) -> None:
    """Clients would wait for a response, and take a missing one for an old broker version."""
    (port,) = free_ports(1)
    settings = f"gateway.listener=127.0.0.1:{port}\n"
    if beside_broker:
        settings += f"log.dirs={tmp_path / 'logs'}\n"
    with _running(tmp_path, command, settings) as log:
        wait_until(
            lambda: "worker started process=gateway" in log.read_text(), describe="the gateway runs"
        )

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)
