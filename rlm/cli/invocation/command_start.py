"""Measures a command's start-up time, which its timeout includes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import typer

from rlm.cli.invocation.amount_options import SHORTEST_S


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStart:
    """Represents when the process began to load the program, estimated from its CPU time."""

    monotonic_s: float

    def elapsed_s(self) -> float:
        """Return the time since `monotonic_s`."""
        return time.monotonic() - self.monotonic_s


def less_start_up(context: typer.Context, timeout_s: float) -> float:
    """Return what the start-up left of the command's timeout; at least 0.1 s."""
    start = context.find_object(CommandStart)
    return timeout_s if start is None else max(SHORTEST_S, timeout_s - start.elapsed_s())
