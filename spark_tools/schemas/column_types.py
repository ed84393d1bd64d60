"""Converts decoded Python values to Arrow arrays, and Arrow types to Spark types. Pure.

Builds arrays field by field: Arrow's own conversion of dictionaries takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import pyarrow as pa

from rsm.segment.errors import UnsupportedError

Values = Sequence[object]


def arrow_array(values: Values, kind: pa.DataType) -> pa.Array:
    """Convert values to an array: dictionaries to structs or maps, and lists to lists.

    Raises an error of Arrow or Python if a value does not fit the type.
    """
    if pa.types.is_struct(kind):
        return struct_array(
            values, kind, [arrow_array(_of_field(values, each.name), each.type) for each in kind]
        )
    if pa.types.is_map(kind):
        maps = [each for each in values if isinstance(each, dict)]
        keys = list(chain.from_iterable(maps))
        items = list(chain.from_iterable(each.values() for each in maps))
        return map_array(
            values, kind, arrow_array(keys, kind.key_type), arrow_array(items, kind.item_type)
        )
    if pa.types.is_list(kind):
        return list_array(values, kind, arrow_array(_flat(values), kind.value_type))
    return pa.array(values, kind)


def struct_array(values: Values, kind: pa.DataType, fields: list[pa.Array]) -> pa.Array:
    """Combine the arrays of fields into structs; a struct is null if its value is None."""
    if not fields:
        return pa.array([None if each is None else {} for each in values], kind)
    mask = pa.array([each is None for each in values], pa.bool_())
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)


def list_array(values: Values, kind: pa.DataType, items: pa.Array) -> pa.Array:
    """Split the concatenated items of all values into lists."""
    return pa.ListArray.from_arrays(_offsets(values), items, type=kind)


def map_array(values: Values, kind: pa.DataType, keys: pa.Array, items: pa.Array) -> pa.Array:
    """Split the concatenated entries of all values into maps."""
    return pa.MapArray.from_arrays(_offsets(values), keys, items, type=kind)


def require_fields(kind: pa.DataType, path: str = "") -> None:
    """Raise UnsupportedError if a struct has no fields, or names that differ only in case."""
    if pa.types.is_map(kind):
        require_fields(kind.item_type, path)
    elif pa.types.is_list(kind):
        require_fields(kind.value_type, path)
    elif pa.types.is_struct(kind):
        if not kind.num_fields:
            raise UnsupportedError(
                "cannot use a type in a column: it has no fields, and Spark requires one",
                field=path or "the schema",
            )
        names: dict[str, str] = {}
        for each in kind:
            other = names.get(each.name.lower())
            if other is not None:
                raise UnsupportedError(
                    "cannot use a type in a column: names of its fields differ only in case",
                    names=f"{other},{each.name}",
                )
            names[each.name.lower()] = each.name
            require_fields(each.type, f"{path}.{each.name}" if path else each.name)


def spark_type(kind: pa.DataType, *, quoted: bool) -> str:
    """Return Spark's name of a type: as DDL if `quoted`, else as its simple string.

    Raises UnsupportedError for a type that Spark does not have.
    """
    if pa.types.is_struct(kind):
        fields = (f"{_name(f.name, quoted)}:{spark_type(f.type, quoted=quoted)}" for f in kind)
        return f"struct<{','.join(fields)}>"
    if pa.types.is_map(kind):
        item = spark_type(kind.item_type, quoted=quoted)
        return f"map<{spark_type(kind.key_type, quoted=quoted)},{item}>"
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type, quoted=quoted)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kind not in _SPARK_TYPES:
        raise UnsupportedError(
            "cannot use a type in a column: Spark does not support it", type=kind
        )
    return _SPARK_TYPES[kind]


_SPARK_TYPES = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.duration("us"): "interval day to second",
}


def _name(name: str, quoted: bool) -> str:  # noqa: FBT001 - private
    return f"`{name.replace('`', '``')}`" if quoted else name


def _of_field(values: Values, name: str) -> list[object]:
    return [None if each is None else each[name] for each in values]  # type: ignore[index]  # a dictionary


def _flat(values: Values) -> list[object]:
    lists: Iterable[Sequence[object]] = (v for v in values if v is not None)  # type: ignore[misc]  # lists
    return list(chain.from_iterable(lists))


def _offsets(values: Values) -> pa.Array:
    """Return each value's start (null if it is None), and then the end of the last value."""
    lengths = [0 if each is None else len(each) for each in values]  # type: ignore[arg-type]  # sized
    starts = list(accumulate(lengths, initial=0))
    nulls = [None if each is None else at for each, at in zip(values, starts, strict=False)]
    return pa.array([*nulls, starts[-1]], pa.int32())
