"""Converts Avro schemas to Arrow types, and decodes payloads by Avro's schema resolution.

Fastavro decodes the payloads. The types are those of Spark's `from_avro`. A union of null and one
type becomes that type. A union of int and long becomes bigint; a union of float and double becomes
double. Any other union becomes a struct with the fields `member0`, `member1`, …. Types that Spark
lacks (times of day, nanoseconds, durations, UUIDs) become their underlying type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any, cast

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType

from rsm.segment.errors import TieredStorageError, UnsupportedError
from spark_tools.schemas.avro.avro_decimals import DECIMAL, require_decimal
from spark_tools.schemas.avro.avro_rows import rows_of
from spark_tools.schemas.avro.avro_types import AvroTypes, decoded_default, smallest_bytes
from spark_tools.schemas.column_types import arrow_array
from spark_tools.schemas.schema_text import ColumnSchema, Decode, RowsReader, SchemaText

Schema = Any
"""A schema as parsed JSON, in the form that fastavro takes."""


class AvroColumn(ColumnSchema):
    """A column of Avro values; records become structs."""

    def __init__(self, reader: SchemaText) -> None:
        """Raise UnsupportedError if the schema is invalid or has no column type."""
        self._reader, named = parsed(reader)
        self._types = AvroTypes(self._reader, named)
        self._read_type, self._unions = self._types.of(self._reader)
        self._type = _for_spark(self._read_type)
        for each in named.values():
            for field in each.get("fields", ()):
                if "default" in field:
                    field["default"] = decoded_default(field["type"], field["default"])
        self._text = reader
        self._rows = rows_of(self._reader, named, self._read_type, self._type)

    @property
    def arrow_type(self) -> pa.DataType:
        return self._type

    def decoder(self, writer: SchemaText | None) -> Decode:
        written = self._reader
        is_same = writer is None or writer == self._text
        if writer is not None and not is_same:
            written, _ = parsed(writer)
        reader = None if is_same else self._reader
        restructure, named_records = self._unions, self._types.names_records

        def decode(payload: bytes) -> object:
            value: object = schemaless_reader(
                BytesIO(payload), written, reader, return_record_name=named_records
            )
            return value if restructure is None else restructure(value)

        return decode

    @property
    def rows(self) -> RowsReader | None:
        return self._rows

    def array(self, values: Sequence[object]) -> pa.Array:
        array = arrow_array(values, self._read_type)
        return array if self._read_type == self._type else array.cast(self._type)


def parsed(schema: SchemaText) -> tuple[Schema, dict[str, Schema]]:
    """Parse a schema and its named types. The results have no logical type except decimal.

    Raises UnsupportedError if the schema is not valid Avro, is too large, has a decimal that Spark
    does not support, or lets a few bytes decode to a value of unlimited size.
    """
    named: dict[str, Schema] = {}
    try:
        for _, reference in schema.all_references():
            parse_schema(_physical(json.loads(reference.text)), named)
        found = parse_schema(_physical(json.loads(schema.text)), named)
        smallest_bytes(found, named)
    except TieredStorageError:
        raise
    except (
        ValueError,
        OverflowError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        SchemaParseException,
        UnknownType,
    ) as error:
        raise UnsupportedError("the Avro schema is invalid", reason=str(error)[:200]) from error
    return found, named


_ARROW_LOGICAL_TYPES = frozenset(  # Arrow converts the stored numbers to these types
    {
        ("int", "date"),
        ("long", "timestamp-millis"),
        ("long", "timestamp-micros"),
        ("long", "local-timestamp-millis"),
        ("long", "local-timestamp-micros"),
    }
)


def _physical(schema: Schema) -> Schema:
    """Rename or remove logical types, so that fastavro returns the stored values."""
    if isinstance(schema, list):
        return [_physical(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    logical, kind = found.get("logicalType"), found.get("type")
    if logical is not None:
        del found["logicalType"]
        if logical == "decimal" and kind in ("bytes", "fixed"):
            require_decimal(found)
            found["logicalType"] = DECIMAL
        elif isinstance(kind, str) and (kind, str(logical)) in _ARROW_LOGICAL_TYPES:
            found["rlmLogicalType"] = logical
    for key in ("type", "items", "values"):
        if isinstance(found.get(key), dict | list):
            found[key] = _physical(found[key])
    if isinstance(found.get("fields"), list):
        found["fields"] = [_physical_field(each) for each in found["fields"]]
    return found


def _physical_field(field: Schema) -> Schema:
    if not isinstance(field, dict) or "type" not in field:
        return field
    return {**field, "type": _physical(field["type"])}


def _for_spark(kind: pa.DataType) -> pa.DataType:
    """Convert timestamp types to microseconds, the only unit that Spark reads."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _for_spark(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _for_spark(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _for_spark(kind.value_type)))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=cast("str | None", kind.tz))
    return kind
