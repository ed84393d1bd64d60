"""When a command started, so that its start-up time counts towards its timeout."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import typer

LONGEST_S = 30 * 86_400.0
_LEAST_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStart:
    """`monotonic_s`: when the process began to load the program, by its processor time."""

    monotonic_s: float

    def elapsed_s(self) -> float:
        """Return the time since then."""
        return time.monotonic() - self.monotonic_s


def finite(seconds: float) -> float:
    """Return `seconds`; reject NaN and infinity, which typer's ranges allow."""
    if not math.isfinite(seconds):
        raise typer.BadParameter("not a number of seconds")
    return seconds


def less_start_up(context: typer.Context, timeout_s: float) -> float:
    """Return the rest of a timeout that the user gave; at least 0.1 s."""
    timeout_s = finite(timeout_s)
    start = context.find_object(CommandStart)
    return timeout_s if start is None else max(_LEAST_S, timeout_s - start.elapsed_s())
