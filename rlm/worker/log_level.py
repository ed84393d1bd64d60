"""Reloads the log level of a running process from its configuration file, on SIGHUP."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rlm.config.load import Config
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


def reload_log_level(load: Callable[[], Config]) -> bool:
    """Set the log level that `load` returns; return whether the configuration was valid.

    Logs one line, whatever the old and new levels are. If the file is invalid, it logs an error and
    keeps the level. All other keys of the file are checked, and have no effect.
    """
    root = logging.getLogger()
    before = root.level
    try:
        level = load().process.logging_level
    except TieredStorageError as error:
        _log.error(LogLine("cannot reload the log level: it stays as it is", reason=error))
        return False
    root.setLevel(logging.INFO)
    _log.info(LogLine("reloaded the log level", before=logging.getLevelName(before), now=level))
    root.setLevel(level)
    return True
