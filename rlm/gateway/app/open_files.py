"""Raises the process's limit of open files, and warns if its clients need a higher one.

Some container engines start processes with a soft limit of 1024 and a much higher hard limit.
"""

from __future__ import annotations

import logging
import resource

from rsm.segment.log_line import LogLine

# Each connection has a socket to the client and one to the broker. A spliced response uses four
# more file descriptors while it is in flight. If none are free, the gateway relays it unspliced.
_OF_CONNECTION = 2
# The caches on disk, connections to store and cluster, and listening sockets need this number of
# further file descriptors.
_OF_OTHERS = 1024
_log = logging.getLogger(__name__)


def raise_open_file_limit() -> int:
    """Raise the soft limit to the hard limit, also for later child processes.

    Returns the soft limit. If it cannot be raised, logs a warning and returns it unchanged.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        _log.warning(LogLine("cannot raise the limit of open files", limit=soft, reason=str(error)))
        return soft
    _log.info(LogLine("raised the limit of open files", before=soft, limit=hard))
    return hard


def warn_of_few_open_files(limit: int, *, connection_count: int) -> None:
    """Log a warning if the limit is too low for this number of client connections."""
    needed = _OF_CONNECTION * connection_count + _OF_OTHERS
    if limit != resource.RLIM_INFINITY and limit < needed:
        _log.warning(
            LogLine(
                "the limit of open files is too low for gateway.max.connections: raise LimitNOFILE "
                "of the unit or nofile of the container, or lower the setting",
                limit=limit,
                needed=needed,
                connections=connection_count,
            )
        )
