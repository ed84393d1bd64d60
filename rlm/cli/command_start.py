"""When the command began, so that its start-up counts towards its timeout."""

from __future__ import annotations

import time
from dataclasses import dataclass

import typer

_LEAST_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStart:
    """`monotonic_s`: when the process began to load the program; it is loaded by computing."""

    monotonic_s: float

    def elapsed_s(self) -> float:
        """How long ago that was."""
        return time.monotonic() - self.monotonic_s


def less_start_up(context: typer.Context, timeout_s: float) -> float:
    """What is left of a timeout that the user gave; at least a moment."""
    start = context.find_object(CommandStart)
    return timeout_s if start is None else max(_LEAST_S, timeout_s - start.elapsed_s())
