"""Waiting for something that other threads or processes bring about, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    predicate: Callable[[], T],
    deadline_s: float = 30.0,
    describe: str | Callable[[], str] = "",
    *,
    interval_s: float = 0.05,
    despite: type[Exception] | tuple[type[Exception], ...] = (),
) -> T:
    """Return the predicate's first true value.

    The predicate is asked at least once, and once more when the deadline has passed. Where it
    raises an error of `despite`, as a cluster of which a broker is down may, that is no value yet.
    Raises AssertionError with `describe` (called only then, if it is a function) and with the last
    value or such error.
    """
    give_up_at = time.monotonic() + deadline_s
    while True:
        last_chance = time.monotonic() >= give_up_at
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
        time.sleep(interval_s)
