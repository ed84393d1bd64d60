"""Formats each log record as one line: time, level, logger and message.

    2026-01-31T12:00:00.123Z INFO rlm.tasks.copying.copier copied segment topic_partition=orders-0

The messages of `rlm` are `LogLine` objects, which format their own fields. Libraries and plug-ins
log text; the `extra` of a call follows the text in the same form. Line ends in messages and stack
traces are escaped, so one record is always one line.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TextIO

from rsm.segment.log_line import LogLine


class OneLineFormatter(logging.Formatter):
    """Formats a record as one line, as the module describes."""

    def __init__(self) -> None:
        super().__init__()
        self._standard = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        when = when.replace("+00:00", "Z")
        message = record.getMessage().replace("\n", "\\n")
        extra = {key: val for key, val in vars(record).items() if key not in self._standard}
        if record.exc_info:
            extra["exception"] = self.formatException(record.exc_info)
        return f"{when} {record.levelname} {record.name} {LogLine(message, **extra)}"


class KafkaClientFilter(logging.Filter):
    """Passes one librdkafka record of each kind per `interval_s`, and all other records.

    While a broker is down, each client logs errors twenty times a second; `rlm` itself logs the
    effects. The kind is the client, the level, and the message up to its first space. Memory: one
    entry for each kind.
    """

    def __init__(self, interval_s: float = 60.0) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._logged_at_s: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("librdkafka."):
            return True
        kind = (record.name, record.levelno, record.getMessage().partition(" ")[0])
        logged_at_s = self._logged_at_s.get(kind)
        if logged_at_s is not None and record.created < logged_at_s + self._interval_s:
            return False
        self._logged_at_s[kind] = record.created
        return True


def configure_logging(level: str, stream: TextIO) -> None:
    """Send records of at least `level` to `stream`, and no longer to earlier streams."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLineFormatter())
    handler.addFilter(KafkaClientFilter())
    root = logging.getLogger()
    others = [each for each in root.handlers if not isinstance(each, logging.StreamHandler)]
    root.handlers[:] = [handler, *others]
    root.setLevel(level)
    # These libraries would log a line for each request; `rlm` logs the important ones itself.
    for library in ("httpx", "httpcore", "uvicorn"):
        logging.getLogger(library).setLevel(logging.WARNING)


def configure_command_logging(stream: TextIO) -> None:
    """Send a command's warnings and errors to `stream`, except those of librdkafka."""
    configure_logging("WARNING", stream)
    # The command itself reports an unreachable cluster.
    logging.getLogger("librdkafka").setLevel(logging.CRITICAL)
