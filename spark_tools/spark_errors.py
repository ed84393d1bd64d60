"""What Spark raises, and the line of it that people are told.

Failures that pyspark has classes for are those; others come as py4j's, a lost executor or classes
that do not fit together among them.
"""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JError)

_OURS = "rsm.segment.errors."
_JAVAS = ": "


def cause_of(error: Exception) -> str:
    """The line of Spark's report that names an error of ours, or Java's, or the first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(_OURS)]
    if ours:
        return ours[-1].partition(": ")[2]
    javas = (line.removeprefix(_JAVAS) for line in lines if line.startswith(_JAVAS))
    return next(javas, next(iter(lines), type(error).__name__))
