"""Loads the compiled code that finds records, when the first records are decoded."""

from __future__ import annotations

import logging
from functools import cache
from types import ModuleType

from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


@cache
def open_record_kernel() -> ModuleType | None:
    """Return `record_kernel`; if numba cannot be loaded, log one warning and return None."""
    try:
        from spark_tools.rows import record_kernel  # noqa: PLC0415
    except (ImportError, OSError) as error:  # OSError: numba's own library does not load
        _log.warning(LogLine("decoding records slowly: cannot load numba", error=error))
        return None
    return record_kernel
