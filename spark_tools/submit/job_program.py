"""Starts a job's program. Handles Ctrl-C before the program's imports, which take seconds."""

from __future__ import annotations

import importlib

from rsm.program.program_start import end_by_interrupt, open_closed_streams


def run_program(module: str) -> None:
    """Import a job's module, and run its `main`, which exits."""
    open_closed_streams()
    end_by_interrupt()
    importlib.import_module(module).main()
