"""The reader programs of the client libraries.

The programs are in `build/clients` or next to this module; `make services` builds the compiled
ones.
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
_LATE_S = 20.0  # longer than a reader takes to report what it lacks

READERS = ("librdkafka", "aiokafka", "java", "franz-go")
READERS_WITH_RACKS = ("librdkafka", "java", "franz-go")
# Not librdkafka, up to 2.16 at least. If metadata arrives when it is about to rebootstrap, it does
# not rebootstrap, and it drops every later attempt, because it takes the first one for running.
READERS_WITH_REBOOTSTRAP = ("java", "franz-go")

Reads = Mapping[int, PartitionRead]


class ReaderFailedError(Exception):
    """A reader ended with an error; the message contains its output."""


def java_program(main_class: str) -> list[str]:
    """Return the command of one of the Java programs."""
    return java_command(main_class, classes=(Path(installed(_JAVA)),))


def go_program() -> str:
    """Return the path of the Go program."""
    return installed(_GO)


def _command(reader: str) -> list[str]:
    match reader:
        case "java":
            return java_program("Reader")
        case "franz-go":
            return [go_program()]
        case _:
            return [sys.executable, "-m", f"tests.clients.{reader}_reader"]


class RunningReader:
    """A running reader, made by `reading`. Not thread-safe."""

    def __init__(self, reader: str, process: subprocess.Popen[bytes], output: Path) -> None:
        self.reader = reader
        self._process = process
        self._output = output

    def wait_paused(self) -> None:
        """Wait until it has read the number of records after which it pauses."""
        wait_until(self._lines, DEADLINE_S + _LATE_S, lambda: f"{self.reader} is paused")
        self._check(self._process.poll())
        assert "paused" in self._lines()[0], f"{self.reader} read all without a pause"

    def resume(self) -> None:
        """Let it continue."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def reads(self) -> Reads:
        """Wait for its end, and return what it has read. Raises ReaderFailedError."""
        self._check(self._process.wait(DEADLINE_S + _LATE_S))
        found = json.loads(self._lines()[-1])
        return {int(number): PartitionRead(**read) for number, read in found.items()}

    def printed(self) -> str:
        """Return the end of its output so far."""
        return self._output.read_text(errors="replace")[-6000:]

    def _lines(self) -> list[str]:
        """Return its lines of JSON so far; one empty line if it ended without any."""
        lines = self._output.read_text(errors="replace").splitlines()
        found = [line for line in lines if line.startswith("{") and line.endswith("}")]
        return found or ([] if self._process.poll() is None else [""])

    def _check(self, exit_code: int | None) -> None:
        if exit_code:
            raise ReaderFailedError(f"{self.reader} ended with {exit_code}:\n{self.printed()}")


@contextmanager
def reading(reader: str, request: ReadRequest, output: Path) -> Iterator[RunningReader]:
    """Run a reader until the block ends. `output` gets what it prints."""
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
