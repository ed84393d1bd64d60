"""`rlm run` survives a wrong edit of its file before a restart, and an early SIGHUP."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.rlm.running_command import META_PROPERTIES, RunningCommand, running
from tests.services.waiting import wait_until

_BACKOFF = ("process.restart.backoff.ms=100", "process.restart.backoff.max.ms=1000")


@contextmanager
def _running_host(directory: Path) -> Iterator[RunningCommand]:
    log_dir = directory / "logs"
    log_dir.mkdir()
    (log_dir / "meta.properties").write_text(META_PROPERTIES)
    settings = (f"log.dirs={log_dir}", "gateway.listener=", "metrics.listener=127.0.0.1:0")
    with running("run", directory, *settings, *_BACKOFF) as command:
        yield command


def _value(host: RunningCommand, pattern: str) -> str:
    host.await_lines(pattern.split("(", maxsplit=1)[0], 1)
    found = [match[1] for line in host.lines() if (match := re.search(pattern, line))]
    return found[-1]


def test_run_when_the_file_is_wrong_at_a_restart_then_stays_up_and_reports_it(
    tmp_path: Path,
) -> None:
    with _running_host(tmp_path) as host:
        address = _value(host, r"serving metrics address=(\S+)")
        pid = int(_value(host, r"process started child=manager pid=(\d+)"))
        host.await_lines("worker started process=manager", 1)
        valid = host.config.read_text()
        host.config.write_text(f"{valid}remote.delete.max.attemps=3\n")

        os.kill(pid, signal.SIGKILL)

        host.await_lines("process ended: its configuration is wrong", 2)
        reasons = httpx.get(f"http://{address}/readyz").json()["reasons"]
        wait_until(
            lambda: _is_explained(address),
            deadline_s=60.0,
            describe=lambda: f"the reason in /readyz, first seen as {reasons}",
        )
        assert host.process.poll() is None

        host.config.write_text(valid)
        host.await_lines("worker started process=manager", 2)


def test_run_when_the_file_is_missing_at_a_restart_then_stays_up_until_it_is_back(
    tmp_path: Path,
) -> None:
    with _running_host(tmp_path) as host:
        pid = int(_value(host, r"process started child=manager pid=(\d+)"))
        host.await_lines("worker started process=manager", 1)
        valid = host.config.read_text()
        host.config.unlink()

        os.kill(pid, signal.SIGKILL)

        host.await_lines("process ended: its configuration is wrong", 2)
        assert host.process.poll() is None

        host.config.write_text(valid)
        host.await_lines("worker started process=manager", 2)


def _is_explained(address: str) -> bool:
    reasons = httpx.get(f"http://{address}/readyz").json()["reasons"]
    return any(
        "manager: not running: its configuration is wrong: " in reason
        and "remote.delete.max.attemps" in reason
        for reason in reasons
    )


def test_run_when_hung_up_before_its_first_line_then_starts(tmp_path: Path) -> None:
    with _running_host(tmp_path) as host:
        wait_until(
            lambda: _blocks_hangup(host.process.pid),
            deadline_s=60.0,
            describe=lambda: "the process defers SIGHUP while it starts",
        )
        assert host.lines() == []

        host.process.send_signal(signal.SIGHUP)

        host.await_lines("worker started process=manager", 1)
        assert host.process.poll() is None


def _blocks_hangup(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    blocked = re.search(r"^SigBlk:\s*(\w+)$", status, re.MULTILINE)
    return blocked is not None and bool(int(blocked[1], 16) & 1 << signal.SIGHUP - 1)
