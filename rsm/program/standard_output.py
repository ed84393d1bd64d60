"""Discards a program's standard output if its reader is gone or the disk is full."""

from __future__ import annotations

import os

from rsm.segment.errors import RetriableError

_STDOUT_FD = 1


def give_up_output() -> None:
    """Discard everything that the program still writes to standard output.

    Otherwise Python would report an error at exit for output that it cannot flush.
    """
    with open(os.devnull, "wb") as devnull:  # noqa: PTH123 - a device
        os.dup2(devnull.fileno(), _STDOUT_FD)


def unwritable_output(error: OSError) -> RetriableError:
    """Discard further output, and return the error to report."""
    give_up_output()
    return RetriableError(
        "cannot write to standard output",
        reason=error.strerror,
        advice="Send the output to another file or program",
    )
