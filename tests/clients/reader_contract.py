"""Defines the arguments and the output of every reader program, in any language and library.

    READER bootstrap=HOST:PORT,… topic=NAME [start=…] [isolation=…] [pause=N] …

A reader asks for the end of each partition once, reads every partition from `start` up to there,
and prints one line of JSON: by partition, `count`, `first_offset`, `last_offset` and `digest` (see
record_digests). `start` is

- `earliest`: the offset that ListOffsets returns for `earliest`, requested explicitly
- `time:MS`: the offset that ListOffsets returns for this timestamp
- `group:NAME`: the position of that consumer group; it subscribes, and commits nothing

After `pause` records (0: never) it prints `{"paused": N}` and continues when a line comes in. It
fetches at most `fetch_bytes` of a partition at a time, so that a paused reader buffers little.
`rack` is its rack, empty for none.

It never resets an offset, but ends with an error instead. It also ends with an error if it does not
reach the end within 60 s of its start or of its pause.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tests.clients.record_digests import RecordDigests

DEADLINE_S = 60.0
RECORDS_PER_POLL = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A reader's arguments."""

    bootstrap: str
    topic: str
    start: str = "earliest"
    isolation: str = "read_uncommitted"
    pause: int = 0
    fetch_bytes: int = 1 << 20
    rack: str = ""

    def arguments(self) -> list[str]:
        """Return the arguments of the program's command line."""
        return [f"{name}={value}" for name, value in asdict(self).items()]

    @property
    def group(self) -> str | None:
        """The group whose committed offsets it starts at; None for other starts."""
        return self.start.removeprefix("group:") if self.start.startswith("group:") else None

    @property
    def time_ms(self) -> int | None:
        """The timestamp that it starts at; None for other starts."""
        return int(self.start.removeprefix("time:")) if self.start.startswith("time:") else None


def parse_arguments(arguments: Sequence[str]) -> ReadRequest:
    """Return the request whose `ReadRequest.arguments` these are."""
    given = dict(argument.split("=", maxsplit=1) for argument in arguments)
    return ReadRequest(
        bootstrap=given["bootstrap"],
        topic=given["topic"],
        start=given["start"],
        isolation=given["isolation"],
        pause=int(given["pause"]),
        fetch_bytes=int(given["fetch_bytes"]),
        rack=given["rack"],
    )


def print_line(content: object) -> None:
    """Print one line of JSON, and flush it."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def print_reads(digests: RecordDigests) -> None:
    """Print a reader's last line."""
    print_line({number: asdict(read) for number, read in digests.reads().items()})
