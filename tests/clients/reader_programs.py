"""The readers of the client libraries, each started as a program of its own.

They are in `build/clients` or next to this module; `make services` builds those that are compiled.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.clients.reader_contract import DEADLINE_S, ReadRequest
from tests.clients.record_digests import PartitionRead
from tests.services.kafka_runtime import java_command
from tests.services.service import Needs, installed
from tests.services.waiting import wait_until

_CHECKOUT = Path(__file__).resolve().parents[2]
_BUILT = _CHECKOUT / "build" / "clients"
_JAVA, _GO = _BUILT / "java", _BUILT / "reader-go"
NEEDS = Needs(installed=(_JAVA, _GO))
_LATE_S = 20.0  # a reader is not ended before it has reported what it lacked

READERS = ("librdkafka", "aiokafka", "java", "franz-go")
READERS_WITH_RACKS = READERS_WITH_REBOOTSTRAP = ("librdkafka", "java", "franz-go")

Reads = Mapping[int, PartitionRead]


class ReaderFailedError(Exception):
    """A reader ended with an error; the message holds what it printed."""


def _command(reader: str) -> list[str]:
    match reader:
        case "java":
            return java_command("Reader", classes=(Path(installed(_JAVA)),))
        case "franz-go":
            return [installed(_GO)]
        case _:
            return [sys.executable, "-m", f"tests.clients.{reader}_reader"]


class RunningReader:
    """One reader at work, made by `reading`. Not thread-safe."""

    def __init__(self, reader: str, process: subprocess.Popen[bytes], output: Path) -> None:
        self.reader = reader
        self._process = process
        self._output = output

    def wait_paused(self) -> None:
        """Wait until it has read as much as it was asked to before its pause."""
        wait_until(self._lines, DEADLINE_S + _LATE_S, lambda: f"{self.reader} is paused")
        self._check(self._process.poll())
        assert "paused" in self._lines()[0], f"{self.reader} read all without a pause"

    def resume(self) -> None:
        """Let it go on."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def reads(self) -> Reads:
        """What it has read when it is at the end. Raises ReaderFailedError."""
        self._check(self._process.wait(DEADLINE_S + _LATE_S))
        found = json.loads(self._lines()[-1])
        return {int(number): PartitionRead(**read) for number, read in found.items()}

    def printed(self) -> str:
        """The end of what it has printed up to now."""
        return self._output.read_text(errors="replace")[-6000:]

    def _lines(self) -> list[str]:
        """Its lines of JSON, among what a client may log; it has ended if there is none yet."""
        lines = self._output.read_text(errors="replace").splitlines()
        found = [line for line in lines if line.startswith("{") and line.endswith("}")]
        return found or ([] if self._process.poll() is None else [""])

    def _check(self, exit_code: int | None) -> None:
        if exit_code:
            raise ReaderFailedError(f"{self.reader} ended with {exit_code}:\n{self.printed()}")


@contextmanager
def reading(reader: str, request: ReadRequest, output: Path) -> Iterator[RunningReader]:
    """Start a reader; it is gone with the block. `output` gets what it prints."""
    with output.open("wb") as printed:
        process = subprocess.Popen(
            [*_command(reader), *request.arguments()],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.STDOUT,
            cwd=_CHECKOUT,
        )
    try:
        yield RunningReader(reader, process, output)
    finally:
        process.kill()
        process.communicate()
