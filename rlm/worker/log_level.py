"""Reloads the log level of a running process from its configuration file after SIGHUP."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rlm.config.load import Config
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


def reload_log_level(load: Callable[[], Config]) -> bool:
    """Set the log level that `load` returns; return whether the configuration was valid.

    Logs one line at INFO, even if the old or new level would suppress it. If the file is invalid,
    logs an error and keeps the level. Checks all other keys of the file, but does not apply them.
    """
    root = logging.getLogger()
    before = root.level
    try:
        level = load().process.logging_level
    except TieredStorageError as error:
        what = "cannot reload the log level: the configuration is invalid, so the level stays"
        _log.error(LogLine(what, reason=error))
        return False
    root.setLevel(logging.INFO)
    _log.info(LogLine("reloaded the log level", before=logging.getLevelName(before), now=level))
    root.setLevel(level)
    return True
