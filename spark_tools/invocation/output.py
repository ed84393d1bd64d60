"""Writes a job's text to standard output. Its reader may be gone, or its disk may be full."""

from __future__ import annotations

import sys

from rsm.program.standard_output import give_up_output, unwritable_output


def write_output(text: str) -> None:
    """Write at once. If the reader is gone, as after `| head`, the job continues without output.

    Raises RetriableError if the output cannot be written.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_output()
    except OSError as error:
        raise unwritable_output(error) from error
