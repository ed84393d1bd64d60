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
_PYTHON_TRACE = "Traceback (most recent call last):\n"


def cause_of(error: Exception) -> str:
    """The line of Spark's report that names an error of ours, of Python, of Java, or the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(_OURS)]
    if ours:
        return ours[-1].partition(": ")[2]
    _, _, trace = str(error).rpartition(_PYTHON_TRACE)
    if trace != str(error):
        # Frames are indented; what follows the last of them is the error.
        raised = (line for line in trace.splitlines() if line[:1].strip())
        return next(raised, type(error).__name__)
    javas = (line.removeprefix(_JAVAS) for line in lines if line.startswith(_JAVAS))
    return next(javas, next(iter(lines), type(error).__name__))
