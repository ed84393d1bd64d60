"""Waits with a deadline for an effect of other threads or processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LONGEST_PAUSE_S = 0.5


def wait_until(
    predicate: Callable[[], T],
    deadline_s: float = 30.0,
    describe: str | Callable[[], str] = "",
    *,
    interval_s: float = 0.05,
    despite: type[Exception] | tuple[type[Exception], ...] = (),
) -> T:
    """Return the predicate's first true value.

    The predicate is called at least once, and once more after the deadline. An error of a type in
    `despite`, as from a cluster with a broker down, counts as no value yet. The pause is
    `interval_s`, or as long as the last call took, up to half a second, so that waiting uses at
    most half a processor. Raises AssertionError with `describe` (if a function, called only then)
    and with the last value or the last such error.
    """
    give_up_at = time.monotonic() + deadline_s
    while True:
        asked_at = time.monotonic()
        last_chance = asked_at >= give_up_at
        last: T | Exception
        try:
            last = value = predicate()
        except despite as error:
            last = error
        else:
            if value:
                return value
        if last_chance:
            what = describe() if callable(describe) else describe
            raise AssertionError(f"not within {deadline_s} s: {what or predicate} (last: {last!r})")
        took_s = time.monotonic() - asked_at
        time.sleep(max(interval_s, min(took_s, _LONGEST_PAUSE_S)))
