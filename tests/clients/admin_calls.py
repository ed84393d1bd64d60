"""The Admin and consumer calls of user interfaces, made by Kafka's Java clients and by kadm.

Both programs make the calls of Kafka UI, AKHQ, Redpanda Console, Conduktor and Kafdrop at each
address in turn. For each address they print one line of JSON: the result of each call by its name,
or the error. Topics, groups and credentials that a program creates have the name `scratch`, and it
deletes them again.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.clients.reader_programs import go_program, java_program

ADMIN_CLIENTS = ("java", "kadm")
_DEADLINE_S = 120.0

Answers = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArguments:
    """The topics, groups and names that the calls use. Each topic has one partition."""

    tiered: str
    whole: str  # not tiered, with the same records
    written: str  # with records of an open transaction; the first record is deleted
    groups: str  # two active groups: one of the classic protocol, one of KIP-848
    transaction: str
    time_ms: int
    scratch: str


def admin_calls(client: str, arguments: CallArguments, addresses: Sequence[str]) -> list[Answers]:
    """Make all calls at each address, and return their results. Raises CalledProcessError."""
    named = {**asdict(arguments), "addresses": ",".join(addresses)}
    done = subprocess.run(
        [*_command(client), *(f"{name}={value}" for name, value in named.items())],
        stdout=subprocess.PIPE,
        timeout=_DEADLINE_S,
        check=True,
    )
    # The output also has log lines of the Java client.
    lines = [line for line in done.stdout.splitlines() if line.startswith(b"{")]
    return [json.loads(line) for line in lines]


def _command(client: str) -> list[str]:
    return java_program("AdminCalls") if client == "java" else [go_program(), "calls=admin"]
