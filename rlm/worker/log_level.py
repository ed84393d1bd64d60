"""Takes the log level of a running process from its configuration file again, on SIGHUP."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rlm.config.load import Config
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


def reload_log_level(load: Callable[[], Config]) -> bool:
    """Set the level of the loaded configuration; return whether it could be loaded.

    Logs one line whatever the levels are. An invalid file is an error in the log, and the level
    stays. All other keys of the file are checked, and have no effect.
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
