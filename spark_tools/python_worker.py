"""Prepares a Python process of a Spark executor once, for all its tasks."""

from __future__ import annotations

import gc
from functools import cache


@cache
def exempt_modules_from_collection() -> None:
    """Exclude all live objects from later garbage collections of this process.

    Spark's worker collects garbage after each task. The objects of loaded modules make this take
    0.15 s, three times as long as reading a small segment. Call this function at the end of a task,
    when all modules are loaded; only the first call has an effect.
    """
    gc.freeze()
