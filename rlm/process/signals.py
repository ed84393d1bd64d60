"""Collects signals as values that a loop waits for; no handler interrupts other code."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RELOAD_SIGNAL = signal.SIGHUP
_STDIN_FD = 0
_READ_BYTES = 64


class SignalInbox:
    """Represents signals that `wait` has not returned yet.

    One thread calls `wait`; any thread calls `wake`. SIGHUP counts as SIGTERM if the process was
    started on a terminal that is closed now.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_terminal = os.isatty(_STDIN_FD)

    def wait(self, timeout_ms: int) -> tuple[int, ...]:
        """Return new signals in order; an empty tuple if `timeout_ms` or `wake` ends the wait."""
        readable, _, _ = select.select([self._read_fd], [], [], timeout_ms / 1000)
        if not readable:
            return ()
        received = os.read(self._read_fd, _READ_BYTES)
        is_closed = self._on_terminal and not os.isatty(_STDIN_FD)
        return tuple(
            signal.SIGTERM if is_closed and number == signal.SIGHUP else number
            for number in received
            if number
        )

    def wake(self) -> None:
        """Make a running `wait` return."""
        os.write(self._write_fd, b"\0")


def defer_reload_signal() -> None:
    """Block SIGHUP until `signal_inbox` unblocks it; a SIGHUP that arrives meanwhile waits."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {RELOAD_SIGNAL})


@contextmanager
def signal_inbox(signals: Sequence[signal.Signals]) -> Iterator[SignalInbox]:
    """Collect `signals` within the context, then restore the handlers.

    Call it in the main thread. The inbox also receives a signal that arrived while it was blocked:
    `defer_reload_signal` and rlm.process.os_child block SIGHUP.
    """
    read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    # If there were no handler, the default action would run. Python writes the signal's number to
    # the wakeup fd.
    previous = {number: signal.signal(number, lambda *_: None) for number in signals}
    previous_fd = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    try:
        yield SignalInbox(read_fd, write_fd)
    finally:
        signal.set_wakeup_fd(previous_fd)
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(read_fd)
        os.close(write_fd)
