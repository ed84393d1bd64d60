"""Prepares a program before its imports: occupies closed descriptors, and lets Ctrl-C end it.

Imports can take seconds. Without this module, Ctrl-C would print the stack of an import.
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
"""Name, descriptor, and the modes of the stream and of its device, if the caller closed it.

A write to a closed standard output fails, as it should; messages to a closed standard error are
lost.
"""


def open_closed_streams() -> None:
    """Occupy closed standard descriptors.

    Otherwise the next opened file would get such a descriptor, and the output of libraries.
    """
    for name, descriptor, mode, device_mode in _STANDARD_STREAMS:
        if getattr(sys, name) is None:
            device = os.open(os.devnull, device_mode)
            os.set_inheritable(device, True)  # noqa: FBT003 - it takes no keyword
            stream = open(descriptor, mode, closefd=False)  # noqa: SIM115 - of the process
            setattr(sys, name, stream)


def end_by_interrupt() -> None:
    """Let Ctrl-C end the process at once and without a stack trace, unless it is ignored.

    Call it at the start of a program, before the program has something to clean up.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
