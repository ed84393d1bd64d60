"""Actors: synchronous code that a scheduler suspends at the points that the code names.

Each actor has its own thread. At any moment either the scheduler or one actor runs, so the schedule
(who runs next, point by point) decides everything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.fakes.effects import ProcessCrashError

START = "start"
END = "end"
_STEP_TIMEOUT_S = 60.0


class ScheduleOverError(BaseException):
    """The scheduler has dropped the schedule. No code under test survives it."""


class Actor:
    """One script. `point` is where it is suspended; it can `advance` until that is END.

    `in_job`: whether it runs a job of a lane, not a cycle. Only the scheduler's thread calls
    `advance` and `close`, only the actor's own calls `pause`.
    """

    def __init__(self, name: str, script: Callable[[], None], *, first_point: str = START) -> None:
        self.name = name
        self.point = first_point
        self.steps_count = 0
        self.in_job = False
        self._script = script
        self._thread: threading.Thread | None = None
        self._resumed, self._suspended = threading.Lock(), threading.Lock()
        self._resumed.acquire()
        self._suspended.acquire()
        self._is_over = False
        self._error: BaseException | None = None

    def advance(self) -> None:
        """Run to the next point or to the end; raise the script's errors, except for a crash."""
        assert self.point != END, "the script has ended"
        self.steps_count += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        else:
            self._resumed.release()
        if not self._suspended.acquire(timeout=_STEP_TIMEOUT_S):
            raise AssertionError(f"{self.name} is blocked after {self.point}")
        if self._error is not None:
            raise self._error

    def pause(self, point: str) -> None:
        """Suspend this actor until its next turn."""
        if self._is_over:
            raise ScheduleOverError
        self.point = point
        self._suspended.release()
        self._resumed.acquire()
        if self._is_over:
            raise ScheduleOverError

    def close(self) -> None:
        """End the script at its present point; it only cleans up."""
        if self._thread is None:
            return
        if self._thread.is_alive():
            self._is_over = True
            if self.point != END:
                self._resumed.release()
            self._thread.join(_STEP_TIMEOUT_S)

    def _run(self) -> None:
        try:
            self._script()
        except (ScheduleOverError, ProcessCrashError):
            pass
        except BaseException as error:  # noqa: BLE001 - the scheduler raises it
            self._error = error
        self.point = END
        self._suspended.release()
