"""Renders one line of a process's log: constant text, then fields as key=value.

    _log.info(LogLine("copied segment", topic_partition=tip, size_bytes=size))
    copied segment topic_partition=orders-0 size_bytes=1048576

A value that is not plain text is quoted as in JSON, and its control characters are escaped. It may
come from a client, and must not control the terminal of a person who reads the log.

The line renders itself, so no field is lost in a process whose formatters are not `rlm`'s, such as
a Spark driver, an executor or a notebook. Source: "Using custom message objects" in Python's
logging documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_PLAIN = re.compile(r"[^\s\"=\\]+")
_CONTROL = re.compile(r"[\x7f-\x9f\u2028\u2029]")  # `json.dumps` escapes those below U+0020.


class LogLine:
    """Represents the line of one logging call.

    **Security:** logs show the message and all fields, so never put a secret in them. `message` is
    constant, and `fields` identify the objects. A handler renders the text when it prints the
    record. Immutable; thread-safe if the values are.
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
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
