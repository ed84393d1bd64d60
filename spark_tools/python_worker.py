"""What a Python process of Spark's executors does once, for all of its tasks."""

from __future__ import annotations

import gc
from functools import cache


@cache
def exempt_modules_from_collection() -> None:
    """Leave what is alive now out of all further garbage collections of this process.

    Spark's worker collects all garbage after each task. That takes 0.15 s with the objects of
    loaded modules, three times as long as the rows of a small segment. To be called at the end of a
    task, when all modules have been loaded; only the first call does something.
    """
    gc.freeze()
