"""Decodes JSON by JSON Schema; values must have the column's type.

Objects with `properties` become structs. Other objects become maps if `additionalProperties` is a
schema, and JSON text if not. A value that may have several types becomes a column of JSON text.
Other constraints of a schema (patterns, bounds, required fields) are not checked.

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
"""Converts a JSON value to the column's type. Raises CorruptError for another type."""

_SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


class JsonColumn(ColumnSchema):
    """JSON values as a column; missing fields of objects are null."""

    def __init__(self, reader: SchemaText) -> None:
        """Raise UnsupportedError for an invalid schema, or one without a column type."""
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
        raise UnsupportedError(
            "the schema is not valid JSON Schema", reason=str(error)[:200]
        ) from error


class _JsonTypes:
    """Converts the types of one schema; `documents` has what the schema refers to by name."""

    def __init__(self, root: object, documents: Mapping[str, object]) -> None:
        self.root = root
        self._documents = documents
        self._budget = NestingBudget()

    def of(self, schema: object, document: object) -> tuple[pa.DataType, Conform]:
        """Return the type of a part of a document, and the converter of values to that type."""
        if not isinstance(schema, dict):  # `true` accepts any value
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
        """Return the only type besides null; JSON text if there are several."""
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
                    "a schema refers to a schema that is not given", reference=reference
                )
            found = document = self._documents[name]
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                raise UnsupportedError(
                    "a schema refers to a part that does not exist", reference=reference
                )
            found = found[key]
        return found, document


def _others(kinds: Sequence[object]) -> Sequence[object]:
    """Return the types except null. Raises UnsupportedError for a type that is not a name."""
    if not all(isinstance(each, str) for each in kinds):
        raise UnsupportedError("the schema is not valid JSON Schema", reason="a type is not a name")
    others = [each for each in kinds if each != "null"]
    return ["number"] if set(others) == {"integer", "number"} else others


def _refuse_constant(name: str) -> object:
    """Raise CorruptError for NaN, Infinity and -Infinity, which are not JSON."""
    raise CorruptError("the record is not valid JSON", found=name)


def _as_text(value: object) -> object:
    return None if value is None else json.dumps(value, separators=(",", ":"), allow_nan=False)


def _wrong(value: object, expected: str) -> CorruptError:
    return CorruptError("a value has another type", found=type(value).__name__, expected=expected)


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
    if value is None or (isinstance(value, float) and isfinite(value)):  # 1e999 is infinite
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
