"""Defines the columns: those of Spark's Kafka source with headers, and the leader epoch.

The columns' types for Spark, in DDL, and for Arrow must agree. Source: Spark's "Structured
Streaming + Kafka Integration Guide", the schema with includeHeaders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from rsm.segment.errors import InvalidConfigError

UNREADABLE = "unreadable"
HEADERS = "headers"

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_ARROW_TYPES: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.field("element", _HEADER)),
        "leader_epoch": pa.int32(),
        UNREADABLE: pa.string(),
    }
)
_SPARK_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
        "headers": "array<struct<key:string,value:binary>>",
        "leader_epoch": "int",
        UNREADABLE: "string",
    }
)
NOT_DECODED: Mapping[str, str] = MappingProxyType({})
COLUMNS = tuple(name for name in _ARROW_TYPES if name != UNREADABLE)
"""All columns of a record. In permissive mode, rows also have the column UNREADABLE."""


def chosen_columns(text: str | None) -> tuple[str, ...]:
    """Parse a comma-separated list of columns, and keep its order; None selects all columns.

    Names match in any case, as in Spark. Raises InvalidConfigError for an unknown or repeated name.
    """
    if text is None:
        return COLUMNS
    by_name = {name.lower(): name for name in COLUMNS}
    asked = [part.strip() for part in text.split(",")]
    chosen = tuple(by_name.get(name.lower(), "") for name in asked)
    if "" in chosen or len(set(chosen)) != len(chosen):
        expected = "some of " + ",".join(COLUMNS)
        raise InvalidConfigError(
            "the option is invalid: it lists unknown or repeated columns",
            option="columns",
            found=text,
            expected=expected,
        )
    return chosen


def spark_types(columns: Sequence[str]) -> Mapping[str, str]:
    """Return Spark's type of each column, as its simple string."""
    return {name: _SPARK_TYPES[name] for name in columns}


def spark_ddl(columns: Sequence[str], decoded: Mapping[str, str] = NOT_DECODED) -> str:
    """Return the columns in Spark's DDL; `decoded` has the types of decoded columns."""
    return ", ".join(f"`{name}` {decoded.get(name) or _SPARK_TYPES[name]}" for name in columns)


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the schema that Spark expects of Arrow batches with these columns."""
    return pa.schema([pa.field(name, _ARROW_TYPES[name]) for name in columns])
