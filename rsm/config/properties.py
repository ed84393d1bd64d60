"""Parses a Java .properties file into keys, values and line numbers.

This module knows only the grammar of the file; the caller interprets the keys. As in Java, the last
of several equal keys wins. As in Kafka, values are stripped of spaces. The encoding is UTF-8; a
byte order mark, which some editors write, is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

from rsm.segment.errors import InvalidConfigError

_MAX_BYTES = 1 << 20
"""The maximum length of a file. Without it, reading a device such as /dev/zero would not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A value and the line of its key; the line is 0 if the value is not from a file."""

    value: str = field(repr=False)
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """The settings of one source; `source` is the path of a file, or an option (`--…`)."""

    source: str
    entries: Mapping[str, Property]

    def get(self, key: str) -> str | None:
        """Return the key's value; None if the key is not given."""
        entry = self.entries.get(key)
        return None if entry is None else entry.value

    def values(self) -> Mapping[str, str]:
        """Return all keys with their values."""
        return {key: entry.value for key, entry in self.entries.items()}

    def invalid(self, message: str, key: str, **context: object) -> InvalidConfigError:
        """Return an error with the file and line of `key`; the caller raises it."""
        entry = self.entries.get(key)
        where: dict[str, object] = named_source(self.source)
        if entry is not None and entry.line:
            where["line"] = entry.line
        return InvalidConfigError(message, **where, key=key, **context)


def named_source(source: str) -> dict[str, object]:
    """Return the context with which an error names the source of settings: a file or an option."""
    return {"option" if source.startswith("--") else "file": source}


def read_properties(path: Path) -> Properties:
    """Read a file of at most 1 MiB in UTF-8. Raises InvalidConfigError for any other file."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror
        raise InvalidConfigError(
            "cannot read the configuration file",
            file=path,
            reason=reason,
            advice="Check its path and permissions",
        ) from error
    if len(content) > _MAX_BYTES:
        raise InvalidConfigError(
            "cannot read the configuration file: it is too long",
            file=path,
            max_bytes=_MAX_BYTES,
            advice="Check that the path is that of a configuration file",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidConfigError(
            "cannot read the configuration file: it is not UTF-8",
            file=path,
            advice="Save it as UTF-8",
        ) from error
    # `_entries` counts line feeds to number the lines.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return parse_properties(text, source=str(path))


def parse_properties(text: str, *, source: str) -> Properties:
    """Parse the text of a .properties file. Raises InvalidConfigError for a malformed escape."""
    try:
        entries = dict(_entries(text))
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidConfigError(
            "the configuration file is invalid: it contains a malformed escape",
            file=source,
            found=error.escape,
            expected="a backslash, u and four hexadecimal digits",
            advice="Correct the escape, or write two backslashes for one",
        ) from error
    return Properties(source=source, entries=entries)


def _entries(text: str) -> Iterator[tuple[str, Property]]:
    line = 1
    for element in javaproperties.parse(text):
        if isinstance(element, javaproperties.KeyValue):
            yield element.key, Property(value=element.value.strip(), line=line)
        line += element.source.count("\n")
