"""A producer and a reader in separate containers, which run while a test changes the stack."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Self

import psutil

from tests.services.waiting import wait_until

_BATCH_RECORDS = 10
_PAUSE_S = 0.1
# A producer waits at most 5 minutes for its last records.
_END_S = 330.0
_READ_S = 180.0


class SteadyProducer:
    """Writes numbered lines to a console producer, 100 a second, within its `with` block."""

    def __init__(self, process: subprocess.Popen[str], *, first: int, line: str) -> None:
        self._process = process
        self._line = line
        self._stopped = Event()
        self._thread = Thread(target=self._write)
        self.next = first
        """The number of the next record."""

    def __enter__(self) -> Self:
        """Start it."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and wait until the brokers have all its records, unless the block failed."""
        self._stopped.set()
        try:
            if kind is None:
                self._thread.join()
                self._process.communicate(timeout=_END_S)
                assert self._process.returncode == 0
        finally:
            _kill(self._process)
            self._thread.join()
            _close_pipes(self._process)

    def _write(self) -> None:
        assert self._process.stdin is not None
        while not self._stopped.wait(_PAUSE_S):
            batch = range(self.next, self.next + _BATCH_RECORDS)
            self._process.stdin.write("".join(self._line.format(number) for number in batch))
            self._process.stdin.flush()
            self.next = batch.stop


class SteadyReader:
    """Collects the numbers that a console consumer prints, within its `with` block.

    The process ends when its input ends.
    """

    def __init__(self, process: subprocess.Popen[str], *, digits: int) -> None:
        self._process = process
        self._digits = digits
        self._thread = Thread(target=self._read)
        self._numbers: list[int] = []  # in the order of arrival

    def sorted_numbers(self) -> list[int]:
        """Return the numbers of all records that it has read, twice if it read one twice."""
        return sorted(self._numbers)

    def wait_for_more(self) -> None:
        """Wait until it reads a record that it has not read before the call."""
        before = len(self._numbers)
        wait_until(
            lambda: len(self._numbers) > before,
            deadline_s=_READ_S,
            describe=f"a record is read after the first {before}",
        )

    def wait_for(self, numbers: list[int]) -> None:
        """Wait until it has read as many records as these."""
        wait_until(
            lambda: len(self._numbers) >= len(numbers),
            deadline_s=_READ_S,
            describe=lambda: f"{len(numbers)} records are read; {len(self._numbers)} are",
        )

    def __enter__(self) -> Self:
        """Start it."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it; after a failure, by a signal that it cannot handle."""
        assert self._process.stdin is not None
        try:
            if kind is None:
                self._process.stdin.close()
                self._thread.join(timeout=_END_S)
        finally:
            _kill(self._process)
            self._thread.join()
            _close_pipes(self._process)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line[: self._digits].isdecimal():
                self._numbers.append(int(line[: self._digits]))


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and its children, if they still run. The stack's end ends the container."""
    if process.poll() is None:
        # compose, which the script started, has the pipes, too.
        started = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in started:
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.wait()


def _close_pipes(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):  # a killed process has not read all
            pipe.close()
