"""What Spark shows to who works in a notebook: what is wrong, without stack frames, and the plan.

Spark's Python processes send the text of an error to the driver, and end. Source: PySpark's
`handle_worker_exception`, which leaves the frames out where SPARK_HIDE_TRACEBACK is set.
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
    """Have an error of ours that leaves the block shown by its message alone.

    For processes of Spark's, which end with the error.
    """
    try:
        yield
    except TieredStorageError:
        os.environ[_WITHOUT_FRAMES] = "1"
        raise


def show_log() -> None:
    """Have what is logged of plans on standard error, which Spark hands on to the driver's.

    Nothing is changed where the user has set up logging.
    """
    logger = logging.getLogger(_PACKAGE)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("rlm: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
