"""Processes that each try one mutant, forked from one that has loaded the tests already.

A task may loop or wait without end, or take all memory. This module then kills its process.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

import psutil

_IDLE_S = 60  # a process that has not computed for this long is blocked
_IDLE_CPU_S = 0.05
_SURVIVED = 42  # an exit code that no process has by accident
_MEMORY_BYTES = 3 << 30
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_FORK = multiprocessing.get_context("fork")


class Outcome(Enum):
    """The result of a mutant's tests."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    BROKEN = "broken"
    """The process ended without the name of a failed test, so the result is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something to run in a process of its own.

    `run` is given a file for its remark and returns whether the mutant survived; if not, the remark
    names what failed. `cpu_s` limits its processor time, not the elapsed time, which depends on
    other processes.
    """

    key: int
    run: Callable[[Path], bool]
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a task ended, and its remark."""

    key: int
    outcome: Outcome
    remark: str
    seconds: float


@dataclass(kw_only=True)
class _Running:
    task: Task
    process: ForkProcess
    directory: Path
    started: float = field(default_factory=time.monotonic)
    computed_s: float = 0
    computed_at: float = field(default_factory=time.monotonic)

    def ended(self) -> Ended | None:
        """Return how the task ended, or None while it runs."""
        if self.process.exitcode is None and not self._is_blocked():
            return None
        seconds = time.monotonic() - self.started
        exit_code = self.process.exitcode
        file = self.directory / "remark"
        remark = file.read_text() if file.exists() else ""
        self.stop()
        outcome = _outcome(exit_code, remark)
        if outcome is Outcome.BROKEN:
            remark = f"exit code {exit_code}"
        return Ended(key=self.task.key, outcome=outcome, remark=remark, seconds=seconds)

    def _is_blocked(self) -> bool:
        assert self.process.pid is not None
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return False
        if times.user + times.system > self.computed_s + _IDLE_CPU_S:
            self.computed_s = times.user + times.system
            self.computed_at = time.monotonic()
        return time.monotonic() > self.computed_at + _IDLE_S

    def stop(self) -> None:
        """End the process with what it started, and remove its files."""
        assert self.process.pid is not None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            self.process.kill()
        self.process.join()
        shutil.rmtree(self.directory, ignore_errors=True)


def _outcome(exit_code: int | None, remark: str) -> Outcome:
    if exit_code in {None, -signal.SIGXCPU, -signal.SIGKILL}:
        return Outcome.TIMED_OUT
    if exit_code == _SURVIVED:
        return Outcome.SURVIVED
    return Outcome.KILLED if remark else Outcome.BROKEN


def run_tasks(tasks: Iterable[Task], *, jobs: int, directory: Path) -> Iterator[Ended]:
    """Run tasks, `jobs` of them at once, and yield each one's end as it comes."""
    waiting = iter(tasks)
    running: list[_Running] = []
    try:
        while True:
            while len(running) < jobs and (task := next(waiting, None)) is not None:
                running.append(_started(task, directory))
            if not running:
                return
            wait([one.process.sentinel for one in running], timeout=0.5)
            for one in list(running):
                ended = one.ended()
                if ended is not None:
                    running.remove(one)
                    yield ended
    finally:
        for one in running:
            one.stop()


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, even by kill -9.

    A process in a group of its own needs this, because Ctrl-C does not reach the process.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _started(task: Task, directory: Path) -> _Running:
    own = Path(tempfile.mkdtemp(dir=directory))
    process = _FORK.Process(target=_run, args=(task, own))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: a forked process has none
        process.start()
    return _Running(task=task, process=process, directory=own)


def _run(task: Task, directory: Path) -> None:
    os.setpgid(0, 0)
    end_with_parent()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    cpu_s = int(task.cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(directory)
    tempfile.tempdir = str(directory)
    survived = task.run(directory / "remark")
    os._exit(_SURVIVED if survived else 1)
