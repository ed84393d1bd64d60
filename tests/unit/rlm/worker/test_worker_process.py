"""A worker's process that hangs ends; one that works does not."""

from __future__ import annotations

import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.unit.rlm.worker.python_process import python_process

_DEADLINE_S = 60.0
_HANG_MS = 2_000  # four times as long as the main thread waits
_PROGRAM = f"""
import ctypes, sys, time
from types import SimpleNamespace

from rlm.worker.worker_process import LOOPBACK_LISTENER, WorkerProgram, run_worker

how = sys.argv[1]
keeps_lock = ctypes.PyDLL(None).sleep
server = SimpleNamespace(start=lambda: print("started", flush=True), stop=lambda: None)


class Worker:
    def start(self):
        if how == "start":
            keeps_lock(60)

    def failure(self):
        if how == "tick":
            keeps_lock(60)

    def is_hanging(self):
        return how == "reader"

    def sign_off(self):
        pass

    def stop(self, *, timeout_ms):
        if how == "stop":
            keeps_lock(60)


class Program(WorkerProgram):
    name = "worker"

    def listener(self, config):
        return LOOPBACK_LISTENER

    def open(self, config, bound, metrics, stack):
        return Worker(), server


run_worker(Program(), lambda: None, rest_fd=None, supervised=False, hang_ms={_HANG_MS})
print("end")
"""


def _worker(directory: Path, how: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a worker that hangs where `how` says."""
    program = directory / "program.py"
    program.write_text(_PROGRAM)
    return python_process(str(program), how)


@pytest.mark.parametrize("how", ["start", "tick", "reader"])
def test_worker_when_it_hangs_then_writes_stacks_and_ends(tmp_path: Path, how: str) -> None:
    with _worker(tmp_path, how) as process:
        output, stacks = process.communicate(timeout=_DEADLINE_S)

    assert process.returncode == 1
    assert "most recent call first" in stacks
    assert "end" not in output


def test_worker_when_its_stop_hangs_then_ends_although_nobody_kills_it(tmp_path: Path) -> None:
    with _worker(tmp_path, "stop") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGTERM)
        output, stacks = process.communicate(timeout=_DEADLINE_S)

    assert (process.returncode, output) == (1, "")
    assert "in stop" in stacks


def test_worker_when_it_works_then_runs_longer_than_the_limit(tmp_path: Path) -> None:
    with _worker(tmp_path, "never") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5 * _HANG_MS / 1000)
        process.send_signal(signal.SIGTERM)
        output, stacks = process.communicate(timeout=_DEADLINE_S)

    assert (process.returncode, output, stacks) == (0, "end\n", "")
