"""The supervisor and a child as real processes: restarts, signals, and the parent's sudden end."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.e2e.rlm import supervised_host
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CLIENT_TIMEOUT_S = 10.0


@contextmanager
def _host(directory: Path, mode: str) -> Iterator[ServiceProcess]:
    process = ServiceProcess(
        [sys.executable, str(supervised_host.__file__), str(directory), mode],
        log_path=directory / "host.log",
    )
    try:
        yield process
    finally:
        process.kill(children=True)


def _wait_for_start(directory: Path, *, after: set[int] | None = None) -> int:
    known = after or set()
    (pid,) = wait_until(
        lambda: {int(path.stem) for path in directory.glob("*.started")} - known,
        describe="a child started",
    )
    return pid


def _wait_for_end(pid: int, *, deadline_s: float) -> None:
    wait_until(lambda: not _runs(pid), deadline_s, f"process {pid} ended")


def _runs(pid: int) -> bool:
    """Return whether a process runs; a zombie has ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_child_when_killed_then_is_started_again(tmp_path: Path) -> None:
    with _host(tmp_path, "obedient"):
        first = _wait_for_start(tmp_path)

        psutil.Process(first).kill()

        assert _wait_for_start(tmp_path, after={first}) != first


def test_supervisor_when_terminated_then_ends_with_its_child(tmp_path: Path) -> None:
    with _host(tmp_path, "obedient") as host:
        child = _wait_for_start(tmp_path)

        assert host.terminate(deadline_s=20) == 0
        assert not _runs(child)


def test_supervisor_when_child_ignores_the_stop_then_kills_it_after_its_stacks(
    tmp_path: Path,
) -> None:
    with _host(tmp_path, "hanging") as host:
        child = _wait_for_start(tmp_path)

        assert host.interrupt(deadline_s=20) == 1
        assert not _runs(child)
    assert "in _be_child" in (tmp_path / "host.log").read_text()


def test_child_when_supervisor_is_killed_then_ends_by_itself(tmp_path: Path) -> None:
    with _host(tmp_path, "obedient") as host:
        child = _wait_for_start(tmp_path)

        host.kill()

        _wait_for_end(child, deadline_s=60)


def test_child_when_supervisor_is_killed_and_clean_stop_hangs_then_ends_all_the_same(
    tmp_path: Path,
) -> None:
    with _host(tmp_path, "hanging") as host:
        child = _wait_for_start(tmp_path)

        host.kill()

        _wait_for_end(child, deadline_s=60)


def test_clients_when_no_process_listens_then_are_refused_at_once(tmp_path: Path) -> None:
    """The address is bound, because the supervisor passes the socket to the child."""
    with _host(tmp_path, "idle"):
        _wait_for_start(tmp_path)

        assert _meets(tmp_path) == "refused"


def test_clients_when_the_process_that_served_died_then_are_refused_at_once(
    tmp_path: Path,
) -> None:
    with _host(tmp_path, "serving"):
        child = _wait_for_start(tmp_path)
        wait_until(lambda: _meets(tmp_path) == "greeted", describe="clients are served")

        psutil.Process(child).kill()

        wait_until(lambda: _meets(tmp_path) == "refused", describe="clients are refused")


def _meets(directory: Path) -> str:
    """Return what a client meets: greeted, refused or closed. Raises TimeoutError if none."""
    port = int((directory / "port").read_text())
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_CLIENT_TIMEOUT_S) as client:
            return "greeted" if client.recv(100) == supervised_host.GREETING else "closed"
    except ConnectionRefusedError:
        return "refused"
    except ConnectionResetError:
        return "closed"
