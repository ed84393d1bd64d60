"""Starts the program of a job, whose imports take seconds."""

from __future__ import annotations

import importlib

from rsm.program.program_start import end_by_interrupt, open_closed_streams


def run_program(module: str) -> None:
    """Run the `main` of a job's module, which this function imports, and exit."""
    open_closed_streams()
    end_by_interrupt()
    importlib.import_module(module).main()
