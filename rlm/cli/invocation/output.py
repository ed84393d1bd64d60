"""Handles a standard output whose reader is gone or whose disk is full."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from rsm.program.standard_output import give_up_output, unwritable_output


@contextmanager
def printing() -> Iterator[None]:
    """Enclose code that only writes to standard output; flush at the end.

    Ends the command quietly if the reader is gone. Raises RetriableError if the output cannot be
    written.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_output()
        raise typer.Exit from None
    except OSError as error:
        raise unwritable_output(error) from error
