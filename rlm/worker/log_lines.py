"""Formats log records: one line each, with time, level and logger before the message.

    2026-01-31T12:00:00.123Z INFO rlm.tasks.copying.copier copied segment topic_partition=orders-0

The message is a `LogLine`, which renders its own fields. A library or a plug-in logs text, and the
`extra` of its call follows in the same form. Line ends in messages and stack traces are escaped, so
one record is always one line.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TextIO

from rsm.segment.log_line import LogLine


class OneLineFormatter(logging.Formatter):
    """Formats a record as one line; see the module."""

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
    """Limits each kind of librdkafka line to one per `interval_s`.

    While a broker is down, each client logs errors twenty times a second; `rlm` logs the effects
    itself. Memory: one entry for each client, level and kind.
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
    """Send records of at least `level` to `stream`, and to no earlier stream."""
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
    """Send the warnings and errors of a command to `stream`."""
    configure_logging("WARNING", stream)
    # The command itself reports an unreachable cluster.
    logging.getLogger("librdkafka").setLevel(logging.CRITICAL)
