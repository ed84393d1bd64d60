"""Runs the program `rlm`; the supervisor starts its children with `python -m rlm`.

Sets up signals before it imports the command line. Otherwise, SIGHUP during the import would end
the process, and Ctrl-C would print a stack trace.
"""

from __future__ import annotations

import importlib
import sys

from rlm.process.signals import defer_reload_signal
from rsm.program.program_start import end_by_interrupt, open_closed_streams

_SERVERS = ("run", "gateway")
"""The commands that read their log level again on SIGHUP."""


def main() -> None:
    """Run the command line of this process and exit."""
    open_closed_streams()
    end_by_interrupt()
    if sys.argv[1:2] and sys.argv[1] in _SERVERS:
        defer_reload_signal()
    importlib.import_module("rlm.cli.main").main()


if __name__ == "__main__":
    main()
