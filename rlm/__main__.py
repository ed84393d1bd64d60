"""The program `rlm`; the supervisor also starts its children with `python -m`.

It imports the command line late. Until then, SIGHUP would end the process by default, and Ctrl-C
would print the stack of an import.
"""

from __future__ import annotations

import importlib
import os
import sys

from rlm.process.signals import defer_reload_signal, end_by_interrupt

_SERVERS = ("run", "gateway")
"""The commands that read their configuration again on SIGHUP."""

_STANDARD_STREAMS = (
    ("stdin", 0, "r", os.O_RDONLY),
    ("stdout", 1, "w", os.O_RDONLY),
    ("stderr", 2, "w", os.O_WRONLY),
)
"""Name, descriptor, and the modes of the stream and of its device, if the caller closed it.

A write to a closed standard output fails, as it should; messages to a closed standard error are
lost.
"""


def main() -> None:
    """Run the command line of this process and exit."""
    open_closed_streams()
    end_by_interrupt()
    if sys.argv[1:2] and sys.argv[1] in _SERVERS:
        defer_reload_signal()
    importlib.import_module("rlm.cli.main").main()


def open_closed_streams() -> None:
    """Occupy closed standard descriptors.

    Otherwise the next file would get them, and with them the messages of libraries.
    """
    for name, descriptor, mode, device_mode in _STANDARD_STREAMS:
        if getattr(sys, name) is None:
            device = os.open(os.devnull, device_mode)
            os.set_inheritable(device, True)  # noqa: FBT003 - it takes no keyword
            stream = open(descriptor, mode, closefd=False)  # noqa: SIM115 - of the process
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()
