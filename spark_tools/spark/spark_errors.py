"""Lists Spark's errors, and extracts the line of an error for users.

pyspark has classes for some failures. Others come as py4j's, for example a lost executor or
incompatible classes.
"""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JError)

_OWN_ERRORS = "rsm.segment.errors."
_JAVAS = ": "
_PYTHON_TRACE = "Traceback (most recent call last):\n"


def cause_of(error: Exception) -> str:
    """Return the line of a TieredStorageError, else of a Python or Java error, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own_lines = [line for line in lines if line.startswith(_OWN_ERRORS)]
    if own_lines:
        return own_lines[-1].partition(": ")[2]
    _, _, trace = str(error).rpartition(_PYTHON_TRACE)
    if trace != str(error):
        # Frames are indented; the error follows the last frame.
        raised = (line for line in trace.splitlines() if line[:1].strip())
        return next(raised, type(error).__name__)
    javas = (line.removeprefix(_JAVAS) for line in lines if line.startswith(_JAVAS))
    return next(javas, next(iter(lines), type(error).__name__))
