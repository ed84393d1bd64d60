"""Reads typed and bounded fields from JSON that another process sent. Pure.

The reader ignores unknown fields, because a newer process sends more fields. It raises CorruptError
for a field of a wrong type or size. The error names the field.

| limit | value | reason |
| --- | --- | --- |
| integers | 64 bits, signed | offsets, sizes and times |
| a text | 65,536 characters | an error text with its causes |
| a list | 100,000 items | the rows of the largest response that rlm.rest.http_exchange accepts |
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.ids import id_from_text
from rsm.segment.ranges import OffsetRange

TEXT_MAX_CHARS = 65_536
ITEMS_MAX_COUNT = 100_000
_INTEGERS = range(-(2**63), 2**63)


class JsonObject:
    """Represents one JSON object, whose fields are read by type.

    Raises CorruptError for a field of a wrong type or size; only `values` omits fields of other
    types. A missing field is the same as null. If a method has no default, its field is required.
    `earlier` is the field's name in an earlier version.
    """

    def __init__(self, document: object, path: str = "") -> None:
        """Read `document`. For errors, `path` is its path in the whole document."""
        self._path = path
        if not isinstance(document, dict):
            raise _malformed(path or "document", "an object", document)
        self._fields: Mapping[str, object] = document

    def integer(self, name: str) -> int:
        return self._integer(name, self._fields.get(name))

    def integer_or_none(self, name: str) -> int | None:
        found = self._fields.get(name)
        return None if found is None else self._integer(name, found)

    def flag(self, name: str) -> bool:
        """Return a boolean; false by default."""
        found = self._fields.get(name)
        if found is None or isinstance(found, bool):
            return found is True
        raise _malformed(self._at(name), "a boolean", found)

    def text(self, name: str, default: str | None = None, *, earlier: str = "") -> str:
        found = self._get(name, earlier)
        return self._text(name, default if found is None else found)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty by default."""
        items = _items(self._list(name), self._at(name))
        return tuple(self._text(f"{name}[{index}]", each) for index, each in enumerate(items))

    def object_or_none(self, name: str, *, earlier: str = "") -> JsonObject | None:
        found = self._get(name, earlier)
        return None if found is None else JsonObject(found, self._at(name))

    def objects(self, name: str) -> tuple[JsonObject, ...]:
        """Return a list of objects; empty by default."""
        return objects_of(self._list(name), self._at(name))

    def kafka_id(self, name: str) -> UUID:
        """Return the id that a field contains in Kafka's text form."""
        text = self.text(name)
        try:
            return id_from_text(text)
        except InvalidConfigError as error:
            raise _malformed(self._at(name), "an id", text) from error

    def offsets(self, start: str, end: str) -> OffsetRange:
        """Return the range of offsets between two fields."""
        first, last = self.integer(start), self.integer(end)
        try:
            return OffsetRange(start_offset=first, end_offset=last)
        except ValueError as error:
            raise _malformed(self._at(end), f"an offset of at least {start}", last) from error

    def offsets_or_none(self, start: str, end: str) -> OffsetRange | None:
        """Return the range of `offsets`; None if the first field is null."""
        return None if self._fields.get(start) is None else self.offsets(start, end)

    def values(self, *, without: str = "") -> Mapping[str, int | str]:
        """Return all integers, booleans and texts by name, except the field `without`."""
        return {
            self._text("*", name): self._value(found)
            for name, found in self._fields.items()
            if name != without and isinstance(found, int | str)
        }

    def malformed(self, name: str, expected: str) -> CorruptError:
        """Return the error of a field whose value is not `expected`."""
        return _malformed(self._at(name), expected, self._fields.get(name))

    def _get(self, name: str, earlier: str) -> object:
        found = self._fields.get(name)
        return self._fields.get(earlier) if found is None and earlier else found

    def _list(self, name: str) -> object:
        found = self._fields.get(name)
        return [] if found is None else found

    def _value(self, found: int | str) -> int | str:
        if isinstance(found, str):
            return self._text("*", found)
        return found if isinstance(found, bool) else self._integer("*", found)

    def _integer(self, name: str, found: object) -> int:
        if not isinstance(found, int) or isinstance(found, bool) or found not in _INTEGERS:
            raise _malformed(self._at(name), "a 64-bit integer", found)
        return found

    def _text(self, name: str, found: object) -> str:
        if not isinstance(found, str) or len(found) > TEXT_MAX_CHARS:
            raise _malformed(
                self._at(name), f"a text of at most {TEXT_MAX_CHARS} characters", found
            )
        return found

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name


def objects_of(document: object, path: str = "") -> tuple[JsonObject, ...]:
    """Return the objects of a JSON list."""
    items = _items(document, path)
    return tuple(JsonObject(each, f"{path}[{index}]") for index, each in enumerate(items))


def _items(found: object, path: str) -> list[object]:
    if not isinstance(found, list) or len(found) > ITEMS_MAX_COUNT:
        raise _malformed(path or "document", f"a list of at most {ITEMS_MAX_COUNT} items", found)
    return found


def _malformed(path: str, expected: str, found: object) -> CorruptError:
    """Return an error without the value of the field: anybody may have sent the document."""
    return CorruptError(
        "cannot read the JSON: a field is malformed",
        field=path[:100],
        expected=expected,
        found=type(found).__name__,
    )
