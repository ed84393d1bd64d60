"""Shows errors to the user of a notebook without stack frames, and shows the log of plans.

A Python process of Spark sends an error's text to the driver and ends. Source: PySpark's
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

    Use it only in Spark's Python processes, because the change lasts until the process ends.
    """
    try:
        yield
    except TieredStorageError:
        os.environ[_WITHOUT_FRAMES] = "1"
        raise


def show_log() -> None:
    """Log plans to standard error; Spark forwards them to the driver's standard error.

    Changes nothing if the user has configured logging.
    """
    logger = logging.getLogger(_PACKAGE)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("rlm: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
