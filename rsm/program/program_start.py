"""Prepares a program before its imports: occupies closed descriptors, and lets Ctrl-C end it.

Imports can take seconds. Without this module, Ctrl-C would print the stack trace of an import.
"""

from __future__ import annotations

import os
import signal
import sys

_STANDARD_STREAMS = (
    ("stdin", 0, "r", os.O_RDONLY),
    ("stdout", 1, "w", os.O_RDONLY),
    ("stderr", 2, "w", os.O_WRONLY),
)
"""Each stream's name, descriptor and mode, and the mode of the device that replaces it.

A write to a closed standard output fails, as it should; messages to a closed standard error are
lost.
"""


def open_closed_streams() -> None:
    """Open the null device for each closed standard stream.

    Otherwise, the next file that the program opens would get the descriptor, and with it the output
    of libraries.
    """
    for name, descriptor, mode, device_mode in _STANDARD_STREAMS:
        if getattr(sys, name) is None:
            device = os.open(os.devnull, device_mode)
            os.set_inheritable(device, True)  # noqa: FBT003 - it takes no keyword
            stream = open(descriptor, mode, closefd=False)  # noqa: SIM115 - of the process
            setattr(sys, name, stream)


def end_by_interrupt() -> None:
    """Let Ctrl-C end the process at once, without a stack trace, unless the process ignores SIGINT.

    Call this function at the start of a program, before there is anything to clean up.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
