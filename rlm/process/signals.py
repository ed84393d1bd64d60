"""Collect signals as values that a loop waits for; no handler interrupts other code."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_READ_BYTES = 64


class SignalInbox:
    """Represents signals not taken yet. One thread calls `wait`; any thread calls `wake`."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd

    def wait(self, timeout_ms: int) -> tuple[int, ...]:
        """Return new signals in order; empty after `timeout_ms` or a `wake`."""
        readable, _, _ = select.select([self._read_fd], [], [], timeout_ms / 1000)
        if not readable:
            return ()
        return tuple(number for number in os.read(self._read_fd, _READ_BYTES) if number)

    def wake(self) -> None:
        """Make a running `wait` return."""
        os.write(self._write_fd, b"\0")


@contextmanager
def signal_inbox(signals: Sequence[signal.Signals]) -> Iterator[SignalInbox]:
    """Collect `signals` within the context, then restore the handlers. Main thread only."""
    read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    # Without a handler the default action would run; the byte arrives through the wakeup fd.
    previous = {number: signal.signal(number, lambda *_: None) for number in signals}
    previous_fd = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    try:
        yield SignalInbox(read_fd, write_fd)
    finally:
        signal.set_wakeup_fd(previous_fd)
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(read_fd)
        os.close(write_fd)
