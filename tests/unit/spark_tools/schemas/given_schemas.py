"""Schemas for tests, and the columns that they describe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO

import fastavro

from spark_tools.schemas.bindings import open_column
from spark_tools.schemas.schema_text import ColumnSchema, SchemaFormat, SchemaText


def avro_text(schema: object, *references: tuple[str, SchemaText]) -> SchemaText:
    """Return an Avro schema."""
    return SchemaText(format=SchemaFormat.AVRO, text=json.dumps(schema), references=references)


def json_text(schema: object, *references: tuple[str, SchemaText]) -> SchemaText:
    """Return a JSON Schema."""
    return SchemaText(format=SchemaFormat.JSON, text=json.dumps(schema), references=references)


def protobuf_text(text: str, *references: tuple[str, SchemaText]) -> SchemaText:
    """Return a Protobuf file."""
    return SchemaText(format=SchemaFormat.PROTOBUF, text=text, references=references)


def column_of(schema: SchemaText, message: str | None = None) -> ColumnSchema:
    """Return the decoder of a schema."""
    return open_column(schema, message)


def decoded(column: ColumnSchema, payloads: Sequence[bytes]) -> list[object]:
    """Decode payloads without a header to the values of a column."""
    decode = column.decoder(None)
    array = column.array([decode(payload) for payload in payloads])
    assert array.type == column.arrow_type
    array.validate(full=True)
    found: list[object] = array.to_pylist(maps_as_pydicts="strict")
    return found


def avro_bytes(schema: object, value: object) -> bytes:
    """Encode a value with fastavro."""
    written = BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), value)  # type: ignore[arg-type]  # JSON
    return written.getvalue()
