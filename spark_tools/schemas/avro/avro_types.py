"""Converts Avro types to Arrow types, and rejects schemas above the limits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rsm.segment.errors import CorruptError, UnsupportedError
from spark_tools.schemas.avro.avro_decimals import DECIMAL, read_decimal
from spark_tools.schemas.schema_text import NestingBudget

Schema = Any
Restructure = Callable[[Any], object]
"""Converts the unions in a decoded value to structs."""

_MAX_FIXED_BYTES = (1 << 31) - 1
_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: Mapping[str, pa.DataType] = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
# The Python type of each Avro type's values. A union's members of the same Python type are
# indistinguishable, unless they are records.
_PYTHON_KINDS: Mapping[str, str] = {
    "boolean": "bool", "int": "int", "long": "int", "float": "float", "double": "float",
    "bytes": "bytes", "fixed": "bytes", "string": "str", "enum": "str", "array": "list",
    "map": "dict", "record": "record", "decimal": "Decimal",
}  # fmt: skip


class AvroTypes:
    """Converts the types of one parsed schema; `named` contains its named types.

    The attribute `names_records` is true if fastavro must return a record in a union together with
    its name.
    """

    def __init__(self, schema: Schema, named: Mapping[str, Schema]) -> None:
        self._named = named
        self._budget = NestingBudget()
        everything = [schema, *named.values()]
        self.names_records = any(_has_union_of_records(each, named) for each in everything)

    def of(self, schema: Schema) -> tuple[pa.DataType, Restructure | None]:
        """Return the Arrow type, and a converter if fastavro's values need one."""
        if isinstance(schema, list):
            return self._of_union(schema)
        full = self._named.get(schema) if isinstance(schema, str) else schema
        if full is None:
            return _PRIMITIVES[schema], None
        kind = full["type"]
        self._budget.enter(full.get("name", "") if kind in ("record", "error") else "")
        try:
            return self._of_type(full, kind)
        finally:
            self._budget.leave()

    def _of_type(self, full: Schema, kind: Schema) -> tuple[pa.DataType, Restructure | None]:
        if isinstance(kind, list | dict):
            return self.of(kind)
        if kind in ("record", "error"):
            fields = [(each["name"], *self.of(each["type"])) for each in full["fields"]]
            changed = [(name, change) for name, _, change in fields if change is not None]
            struct = pa.struct([pa.field(name, arrow) for name, arrow, _ in fields])
            if not changed and not self.names_records:
                return struct, None
            return struct, _restructured_record(changed)
        if kind == "array":
            arrow, change = self.of(full["items"])
            listed = pa.list_(pa.field("element", arrow))
            return listed, None if change is None else _restructured_list(change)
        if kind == "map":
            arrow, change = self.of(full["values"])
            mapped = pa.map_(pa.string(), arrow)
            return mapped, None if change is None else _restructured_map(change)
        if full.get("logicalType") == DECIMAL:
            return pa.decimal128(full["precision"], full.get("scale", 0)), None
        if "rlmLogicalType" in full:
            return _LOGICAL[full["rlmLogicalType"]], None
        return self.of(kind) if kind in self._named else (_PRIMITIVES[kind], None)

    def _of_union(self, members: Sequence[Schema]) -> tuple[pa.DataType, Restructure | None]:
        others = [each for each in members if each != "null"]
        kinds = {self._kind(each) for each in others}
        if len(others) == 1:
            arrow, change = self.of(others[0])
            return arrow, _restructured_nullable(change, is_named=self.names_records)
        if kinds == {"int"} and set(others) == {"int", "long"}:
            return pa.int64(), None
        if kinds == {"float"} and set(others) == {"float", "double"}:
            return pa.float64(), None
        return self._of_members(others)

    def _of_members(self, others: Sequence[Schema]) -> tuple[pa.DataType, Restructure | None]:
        typed = [self.of(each) for each in others]
        names = [f"member{number}" for number in range(len(others))]
        locations: dict[str, int] = {}
        records: dict[str, int] = {}
        fields: dict[frozenset[str], list[int]] = {}
        for location, each in enumerate(others):
            kind = self._kind(each)
            if kind == "record":
                record = self._named[each] if isinstance(each, str) else each
                records[record["name"]] = location
                names_of_fields = frozenset(field["name"] for field in record["fields"])
                fields.setdefault(names_of_fields, []).append(location)
            elif kind in locations:
                raise _indistinguishable(others)
            else:
                locations[kind] = location
        if records and "dict" in locations:
            raise _indistinguishable(others)
        changes = [change for _, change in typed]

        def restructure(value: object) -> object:
            if value is None:
                return None
            location, value = _member(value, locations, records, fields)
            change = changes[location]
            found: dict[str, object] = dict.fromkeys(names)
            found[names[location]] = value if change is None else change(value)
            return found

        kinds = zip(names, typed, strict=True)
        return pa.struct([pa.field(name, arrow) for name, (arrow, _) in kinds]), restructure

    def _kind(self, schema: Schema) -> str:
        full = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(full, str):
            return _PYTHON_KINDS.get(full, full)
        if full.get("logicalType") == DECIMAL:
            return "Decimal"
        return _PYTHON_KINDS.get(str(full["type"]), str(full["type"]))


def _indistinguishable(members: Sequence[Schema]) -> UnsupportedError:
    return UnsupportedError(
        "cannot use a union: its decoded members cannot be distinguished", members=members
    )


def _member(
    value: object,
    locations: Mapping[str, int],
    records: Mapping[str, int],
    fields: Mapping[frozenset[str], list[int]],
) -> tuple[int, object]:
    """Return the index of a value's member in its union, and the value without its name."""
    if isinstance(value, tuple):
        name, record = value
        return records[name], record
    if isinstance(value, dict) and records:
        found = fields.get(frozenset(value), [])
        if len(found) != 1:
            raise CorruptError(
                "cannot decode a union: the record fits none or several of its members"
            )
        return found[0], value
    return locations[type(value).__name__], value


def _restructured_record(changed: Sequence[tuple[str, Restructure]]) -> Restructure:
    def restructure(value: Any) -> object:  # noqa: ANN401 - of any schema
        if isinstance(value, tuple):  # only the writer's schema has a union here
            value = value[1]
        for name, change in changed:
            value[name] = change(value[name])
        return value

    return restructure


def _restructured_list(change: Restructure) -> Restructure:
    return lambda value: [change(each) for each in value]


def _restructured_map(change: Restructure) -> Restructure:
    return lambda value: {key: change(each) for key, each in value.items()}


def _restructured_nullable(change: Restructure | None, *, is_named: bool) -> Restructure | None:
    if change is None and not is_named:
        return None

    def restructure(value: object) -> object:
        if isinstance(value, tuple):
            value = value[1]
        return value if value is None or change is None else change(value)

    return restructure


def _has_union_of_records(schema: Schema, named: Mapping[str, Schema]) -> bool:
    """Return whether a union has several records; fastavro must then return their names."""
    if isinstance(schema, dict):
        parts = [schema.get(key) for key in ("type", "items", "values")]
        parts += [each["type"] for each in schema.get("fields", ())]
        return any(_has_union_of_records(each, named) for each in parts)
    if not isinstance(schema, list):
        return False
    full = [named.get(each) if isinstance(each, str) else each for each in schema]
    records = [each for each in full if each is not None and each["type"] in ("record", "error")]
    return len(records) > 1 or any(_has_union_of_records(each, named) for each in schema)


def decoded_default(schema: Schema, default: object) -> object:
    """Convert a field's default; JSON represents each byte of bytes as a character."""
    first = schema[0] if isinstance(schema, list) and schema else schema
    kind = first["type"] if isinstance(first, dict) else first
    if not isinstance(default, str) or kind not in ("bytes", "fixed"):
        return default
    data = default.encode("latin-1", "replace")
    if not isinstance(first, dict) or first.get("logicalType") != DECIMAL:
        return data
    try:
        return read_decimal(data, first)
    except CorruptError as error:
        raise UnsupportedError(
            "the schema is invalid: a default does not fit its type", reason=error
        ) from error


def smallest_bytes(
    schema: Schema, named: Mapping[str, Schema], budget: NestingBudget | None = None
) -> int:
    """Return a lower bound of a value's length in bytes; 0 only if a value can take no bytes.

    Raises UnsupportedError if a few bytes could decode to a value of unlimited size: for a
    type that contains itself, and for an array whose elements take no bytes. Also raises it for an
    invalid size, and at the limits of NestingBudget.
    """
    budget = budget or NestingBudget()
    if isinstance(schema, list):
        for each in schema:
            smallest_bytes(each, named, budget)
        return 1
    full = named.get(schema) if isinstance(schema, str) else schema
    if full is None:
        return 0 if schema == "null" else 1
    kind = full["type"]
    budget.enter(full.get("name", "") if kind in ("record", "error") else "")
    try:
        if isinstance(kind, list | dict):
            return smallest_bytes(kind, named, budget)
        if kind in ("record", "error"):
            return sum(smallest_bytes(each["type"], named, budget) for each in full["fields"])
        if kind == "array" and not smallest_bytes(full["items"], named, budget):
            raise UnsupportedError("cannot read an array: its elements take no bytes")
        if kind == "map":
            smallest_bytes(full["values"], named, budget)
        return _fixed_bytes(full) if kind == "fixed" else int(kind != "null")
    finally:
        budget.leave()


def _fixed_bytes(schema: Schema) -> int:
    size = schema["size"]
    if type(size) is not int or not 0 <= size <= _MAX_FIXED_BYTES:
        raise UnsupportedError(
            "the size of a fixed type is invalid",
            type=schema.get("name"),
            found=size,
            most=_MAX_FIXED_BYTES,
        )
    return size
