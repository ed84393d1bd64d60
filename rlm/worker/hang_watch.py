"""Writes the stacks of a hanging process to standard error, and ends the process.

A native library that waits while it has the interpreter's lock blocks all Python threads and signal
handlers, so none of them can notice the hang. The thread of `faulthandler` does not need the lock.
As with a JVM, SIGQUIT also writes the stacks, and the process continues.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_EXTENSIONS = 12  # `extend` moves the deadline at most this often within `hang_ms`.


class HangWatch:
    """Represents the deadline after which this process counts as hanging. Use in the main thread.

    There is no deadline before the first `extend`.
    """

    def __init__(self, hang_ms: int) -> None:
        self._hang_s = hang_ms / 1000
        self._next_s = 0.0

    def extend(self) -> None:
        """Set the deadline to about `hang_ms` from now.

        When the deadline passes, the process writes its stacks and ends with code 1. This also
        happens if the process was frozen for that long.
        """
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._hang_s / _EXTENSIONS
        with suppress(RuntimeError):  # If no thread can be started, there is no deadline.
            faulthandler.dump_traceback_later(self._hang_s, exit=True)

    def end_process(self) -> None:
        """Write the stacks and end with code 1; skip the cleanup, which could hang."""
        faulthandler.dump_traceback()
        os._exit(1)


@contextmanager
def hang_watch(hang_ms: int) -> Iterator[HangWatch]:
    """Watch the process until the context ends. Standard error must have a file descriptor."""
    faulthandler.register(signal.SIGQUIT)
    try:
        yield HangWatch(hang_ms)
    finally:
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGQUIT)
