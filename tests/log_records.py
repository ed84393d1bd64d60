"""The constant text and the fields of a log record that product code wrote."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rsm.segment.log_line import LogLine


def message_of(record: logging.LogRecord) -> str:
    """Return the record's text without its fields."""
    line: object = record.msg
    return line.message if isinstance(line, LogLine) else record.getMessage()


def fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """Return the fields of the record's line; empty for plain text."""
    line: object = record.msg
    return line.fields if isinstance(line, LogLine) else {}
