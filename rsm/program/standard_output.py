"""Gives up a program's standard output if its reader is gone or its disk is full."""

from __future__ import annotations

import os

from rsm.segment.errors import RetriableError

_STDOUT_FD = 1


def give_up_output() -> None:
    """Discard what the program still writes to standard output.

    Otherwise Python would report an error at exit for output that it cannot flush.
    """
    with open(os.devnull, "wb") as devnull:  # noqa: PTH123 - a device
        os.dup2(devnull.fileno(), _STDOUT_FD)


def unwritable_output(error: OSError) -> RetriableError:
    """Return the error for output that cannot be written, and give the output up."""
    give_up_output()
    return RetriableError(
        "standard output cannot be written",
        reason=error.strerror,
        advice="Write it to another file or program",
    )
