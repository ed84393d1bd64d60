"""Writing to standard output, which may have no reader any more or no space left."""

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
    """Around what only writes to standard output; all of it is written at the end.

    Ends the command quietly if nobody reads any more. RetriableError if it cannot be written.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
        raise typer.Exit from None
    except OSError as error:
        _give_up_output()
        raise RetriableError("standard output cannot be written", reason=error.strerror) from error


def _give_up_output() -> None:
    # Python would complain at exit of what it cannot flush.
    with open(os.devnull, "wb") as devnull:  # noqa: PTH123 - a device
        os.dup2(devnull.fileno(), _STDOUT_FD)
