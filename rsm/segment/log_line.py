"""One line of a process's log: constant text, then fields as key=value.

    _log.info(LogLine("copied segment", topic_partition=tip, size_bytes=size))
    copied segment topic_partition=orders-0 size_bytes=1048576

The line renders itself, so no field is lost in a process whose formatters are not `rlm`'s: a Spark
driver, an executor, a notebook. Source: "Using custom message objects" of Python's logging
documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_PLAIN = re.compile(r"[^\s\"=\\]+")


class LogLine:
    """What a logging call logs: `message` is constant, `fields` identify the objects.

    Rendered only if a handler prints the record. Immutable, so safe for threads if the values are.
    Never put a secret in either.
    """

    __slots__ = ("fields", "message")

    def __init__(self, message: str, /, **fields: object) -> None:
        self.message = message
        self.fields: Mapping[str, object] = fields

    def __str__(self) -> str:
        pairs = (f"{name}={_quoted(value)}" for name, value in self.fields.items())
        return " ".join((self.message, *pairs))


def _quoted(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
