"""Ends one attempt of a task: at its deadline, when the process stops, or when the lead is lost."""

from __future__ import annotations

from collections.abc import Callable

from rsm.segment.clock import Clock
from rsm.segment.errors import FencedError, RetriableError, StoppedError
from rsm.spi import CopyAttempt


class BoundedAttempt(CopyAttempt):
    """Represents an attempt to copy or check objects, with a monotonic deadline. Thread-safe.

    The attempt also ends once the process is `stopping` or no longer `leads` the partition. By
    default, the attempt does not check the lead.
    """

    def __init__(
        self,
        clock: Clock,
        deadline_ms: int,
        stopping: Callable[[], bool],
        *,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._stopping = stopping
        self._leads = leads

    def check(self) -> None:
        if self._stopping():
            raise StoppedError("cannot finish the attempt: the process stops")
        if not self._leads():
            raise FencedError(
                "cannot finish the attempt: the process no longer leads the partition"
            )
        if self._clock.monotonic_ms() > self._deadline_ms:
            raise RetriableError("cannot finish the attempt: it is past its deadline")
