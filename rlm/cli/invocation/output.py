"""Writes to standard output, whose reader may be gone or whose disk may be full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from rsm.segment.errors import RetriableError

_STDOUT_FD = 1


@contextmanager
def printing() -> Iterator[None]:
    """Enclose code that only writes to standard output; flush at the end.

    Ends the command quietly if the reader is gone. RetriableError if the output cannot be written.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
        raise typer.Exit from None
    except OSError as error:
        _give_up_output()
        raise RetriableError(
            "standard output cannot be written",
            reason=error.strerror,
            advice="Write it to another file or program",
        ) from error


def _give_up_output() -> None:
    # At exit, Python would report an error for output that it cannot flush.
    with open(os.devnull, "wb") as devnull:  # noqa: PTH123 - a device
        os.dup2(devnull.fileno(), _STDOUT_FD)
