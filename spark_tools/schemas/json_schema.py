"""Decodes JSON values to the type that a JSON Schema gives their column.

Objects with `properties` become structs. Other objects become maps if `additionalProperties` is a
schema, and JSON text otherwise. Values that can have several types become JSON text. Constraints
other than types (patterns, bounds, required fields) are not checked.

Source: JSON Schema, drafts 4 to 2020-12.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from urllib.parse import unquote

import pyarrow as pa

from rsm.segment.errors import CorruptError, UnsupportedError
from spark_tools.schemas.column_types import arrow_array
from spark_tools.schemas.schema_text import (
    ColumnSchema,
    Decode,
    NestingBudget,
    RowsReader,
    SchemaText,
)

Conform = Callable[[object], object]
"""Converts a JSON value to the column's type. Raises CorruptError for a value of another type."""

_SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


class JsonColumn(ColumnSchema):
    """A column of JSON values. Missing fields of objects are null."""

    def __init__(self, reader: SchemaText) -> None:
        """Raise UnsupportedError if the schema is invalid or has no column type."""
        documents = {name: _document(each) for name, each in reader.all_references()}
        self._types = _JsonTypes(_document(reader), documents)
        self._type, self._conform = self._types.of(self._types.root, self._types.root)

    @property
    def arrow_type(self) -> pa.DataType:
        return self._type

    def decoder(self, writer: SchemaText | None) -> Decode:
        """Return a decoder. It ignores the writer's schema, because JSON names its fields."""
        conform = self._conform
        return lambda payload: conform(json.loads(payload, parse_constant=_refuse_constant))

    @property
    def rows(self) -> RowsReader | None:
        return None

    def array(self, values: Sequence[object]) -> pa.Array:
        return arrow_array(values, self._type)


def _document(schema: SchemaText) -> object:
    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise UnsupportedError("the JSON Schema is invalid", reason=str(error)[:200]) from error


class _JsonTypes:
    """Converts the types of one schema; `documents` are the schemas it refers to, by name."""

    def __init__(self, root: object, documents: Mapping[str, object]) -> None:
        self.root = root
        self._documents = documents
        self._budget = NestingBudget()

    def of(self, schema: object, document: object) -> tuple[pa.DataType, Conform]:
        """Return the type of a part of a document, and the converter of values to that type."""
        if not isinstance(schema, dict):  # The schema `true` accepts any value.
            return pa.string(), _as_text
        reference = schema.get("$ref")
        self._budget.enter(f"{id(document)} {reference}" if reference else "")
        try:
            if isinstance(reference, str):
                return self.of(*self._found(reference, document))
            return self._of_schema(schema, document)
        finally:
            self._budget.leave()

    def _of_schema(
        self, schema: Mapping[str, object], document: object
    ) -> tuple[pa.DataType, Conform]:
        for key in ("oneOf", "anyOf"):
            members = schema.get(key)
            if isinstance(members, list):
                return self._of_members(members, document)
        kind = schema.get("type")
        if isinstance(kind, list):
            others = _others(kind)
            if len(others) != 1:
                return pa.string(), _as_text
            kind = others[0]
        if kind is None:
            kind = "object" if isinstance(schema.get("properties"), dict) else None
        if kind == "object":
            return self._of_object(schema, document)
        if kind == "array" and isinstance(schema.get("items"), dict):
            item, conform = self.of(schema["items"], document)
            return pa.list_(pa.field("element", item)), _conform_list(conform)
        if isinstance(kind, str) and kind in _SCALARS:
            return _SCALARS[kind], _CONFORM[kind]
        return pa.string(), _as_text

    def _of_members(
        self, members: Sequence[object], document: object
    ) -> tuple[pa.DataType, Conform]:
        """Return the only type other than null; JSON text if there is not exactly one."""
        others = [
            each for each in members if not (isinstance(each, dict) and each.get("type") == "null")
        ]
        return self.of(others[0], document) if len(others) == 1 else (pa.string(), _as_text)

    def _of_object(
        self, schema: Mapping[str, object], document: object
    ) -> tuple[pa.DataType, Conform]:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            typed = {name: self.of(each, document) for name, each in properties.items()}
            struct = pa.struct([pa.field(name, kind) for name, (kind, _) in typed.items()])
            return struct, _conform_object([(name, each) for name, (_, each) in typed.items()])
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            item, conform = self.of(others, document)
            return pa.map_(pa.string(), item), _conform_map(conform)
        return pa.string(), _as_text

    def _found(self, reference: str, document: object) -> tuple[object, object]:
        """Return the schema that a reference names, and its document. Raises UnsupportedError."""
        name, _, pointer = reference.partition("#")
        found = document
        if name:
            if name not in self._documents:
                raise UnsupportedError(
                    "the JSON Schema is invalid: it refers to a missing schema", reference=reference
                )
            found = document = self._documents[name]
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                raise UnsupportedError(
                    "the JSON Schema is invalid: it refers to a missing part", reference=reference
                )
            found = found[key]
        return found, document


def _others(kinds: Sequence[object]) -> Sequence[object]:
    """Return the types except null; `integer` and `number` together are `number`.

    Raises UnsupportedError if a type is not a string.
    """
    if not all(isinstance(each, str) for each in kinds):
        raise UnsupportedError("the JSON Schema is invalid: a type is not a string")
    others = [each for each in kinds if each != "null"]
    return ["number"] if set(others) == {"integer", "number"} else others


def _refuse_constant(name: str) -> object:
    """Raise CorruptError for NaN, Infinity and -Infinity, which are not JSON."""
    raise CorruptError("cannot decode the record: it is not valid JSON", found=name)


def _as_text(value: object) -> object:
    return None if value is None else json.dumps(value, separators=(",", ":"), allow_nan=False)


def _wrong(value: object, expected: str) -> CorruptError:
    return CorruptError(
        "cannot decode a value: its type is wrong", found=type(value).__name__, expected=expected
    )


def _string(value: object) -> object:
    if value is None or isinstance(value, str):
        return value
    raise _wrong(value, "string")


def _boolean(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    raise _wrong(value, "boolean")


def _integer(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # JSON Schema accepts 1.0 as an integer
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _wrong(value, "integer")


def _number(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # Python parses 1e999 as infinity.
    if value is None or (isinstance(value, float) and isfinite(value)):
        return value
    raise _wrong(value, "finite number")


_CONFORM: Mapping[str, Conform] = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
}


def _conform_object(fields: Sequence[tuple[str, Conform]]) -> Conform:
    def conform(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(value, "object")
        return {name: each(value.get(name)) for name, each in fields}

    return conform


def _conform_map(item: Conform) -> Conform:
    def conform(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(value, "object")
        return {name: item(each) for name, each in value.items()}

    return conform


def _conform_list(item: Conform) -> Conform:
    def conform(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _wrong(value, "array")
        return [item(each) for each in value]

    return conform
