"""Write the stacks of a process that hangs to standard error, and end it.

A native library that waits while it holds the interpreter's lock stops every thread, and the
handlers of signals with them: no thread of Python could notice it. The thread of `faulthandler`
needs no lock. As with a JVM, SIGQUIT writes the stacks at any time, and the process continues.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager


class HangWatch:
    """Represents the deadline after which this process counts as hanging; at first, none."""

    def __init__(self, hang_ms: int) -> None:
        self._hang_ms = hang_ms

    def extend(self) -> None:
        """Set the deadline to `hang_ms` from now. At it, the process ends with exit code 1.

        A process that was frozen for as long ends, too.
        """
        faulthandler.dump_traceback_later(self._hang_ms / 1000, exit=True)

    def begin_stop(self, dump_after_ms: int) -> None:
        """Replace the deadline: write the stacks once after this time, but do not end."""
        faulthandler.dump_traceback_later(dump_after_ms / 1000)


@contextmanager
def hang_watch(hang_ms: int) -> Iterator[HangWatch]:
    """Watch the process within the context. Standard error must be a file descriptor."""
    faulthandler.register(signal.SIGQUIT)
    try:
        yield HangWatch(hang_ms)
    finally:
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGQUIT)
