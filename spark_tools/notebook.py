"""Shows a notebook's user errors without stack frames, and the plan's log.

Spark's Python processes send an error's text to the driver and end. Source: PySpark's
`handle_worker_exception`, which omits the frames if SPARK_HIDE_TRACEBACK is set.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rsm.segment.errors import TieredStorageError

_WITHOUT_FRAMES = "SPARK_HIDE_TRACEBACK"
_PACKAGE = "spark_tools"


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Make Spark show only the message of a TieredStorageError that leaves the block.

    Only for Spark's processes, which end with the error.
    """
    try:
        yield
    except TieredStorageError:
        os.environ[_WITHOUT_FRAMES] = "1"
        raise


def show_log() -> None:
    """Log plans to standard error, which Spark forwards to the driver's.

    Changes nothing if the user has configured logging.
    """
    logger = logging.getLogger(_PACKAGE)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("rlm: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
