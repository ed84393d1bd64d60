"""Lists Spark's error classes, and extracts the line of an error that states its cause.

pyspark has classes for some failures. Other failures, for example a lost executor or incompatible
classes, raise errors of py4j.
"""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rsm.segment.errors import InvalidConfigError

SPARK_ERRORS = (PySparkException, Py4JError)

_OWN_ERRORS = "rsm.segment.errors."
_INVALID_CONFIG = f"{_OWN_ERRORS}{InvalidConfigError.__name__}:"
_JAVAS = ": "
_PYTHON_TRACE = "Traceback (most recent call last):\n"


def cause_of(error: Exception) -> str:
    """Return the line that states the cause.

    Prefers the line of a TieredStorageError, then of a Python error, then of a Java error, then the
    first line.
    """
    lines = _lines(error)
    own_lines = _own_lines(lines)
    if own_lines:
        return own_lines[-1].partition(": ")[2]
    _, _, trace = str(error).rpartition(_PYTHON_TRACE)
    if trace != str(error):
        # Frames are indented; the error follows the last frame.
        raised = (line for line in trace.splitlines() if line[:1].strip())
        return next(raised, type(error).__name__)
    javas = (line.removeprefix(_JAVAS) for line in lines if line.startswith(_JAVAS))
    return next(javas, next(iter(lines), type(error).__name__))


def is_invalid_config(error: Exception) -> bool:
    """Return whether the cause is an InvalidConfigError from a Python process of Spark."""
    own_lines = _own_lines(_lines(error))
    return bool(own_lines) and own_lines[-1].startswith(_INVALID_CONFIG)


def _lines(error: Exception) -> list[str]:
    return [line.strip() for line in str(error).splitlines() if line.strip()]


def _own_lines(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(_OWN_ERRORS)]
