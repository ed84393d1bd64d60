"""Compiled code reads the same values from records as fastavro does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_tools.schemas.avro.avro_schema import AvroColumn
from spark_tools.schemas.decoded_rows import ColumnDecoder
from spark_tools.schemas.schema_text import RowsReader
from tests.unit.spark_tools.schemas.given_schemas import avro_bytes, avro_text

pytestmark = pytest.mark.unit

_LEAVES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "boolean": ("boolean", st.booleans()),
    "int": ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": ("long", st.integers(-(1 << 63), (1 << 63) - 1)),
    "float": ("float", st.floats(width=32)),
    "double": ("double", st.floats()),
    "bytes": ("bytes", st.binary(max_size=8)),
    "string": ("string", st.text(max_size=8)),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")),
    "fixed": ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
    "day": ({"type": "int", "logicalType": "date"}, st.integers(0, 9_999)),
    "ms": ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(0, 1 << 41)),
    "us": ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(0, 1 << 51)),
}


class ByFastavro(AvroColumn):
    """The same column without compiled code."""

    @property
    def rows(self) -> RowsReader | None:
        return None


@st.composite
def flat_records(draw: st.DrawFn) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a schema of plain and nullable leaves, some in a nested record, and its values."""
    names = draw(st.lists(st.sampled_from(list(_LEAVES)), min_size=1, max_size=6, unique=True))
    fields, values = [], {}
    for name in names:
        kind, of_kind = _LEAVES[name]
        match draw(st.integers(0, 3)):
            case 0:
                kind, of_kind = ["null", kind], st.none() | of_kind
            case 1:
                kind, of_kind = [kind, "null"], st.none() | of_kind
            case 2:
                inner = {
                    "type": "record",
                    "name": f"R{name}",
                    "fields": [{"name": "x", "type": kind}],
                }
                kind, of_kind = inner, st.fixed_dictionaries({"x": of_kind})
        fields.append({"name": name, "type": kind})
        values[name] = of_kind
    return {"type": "record", "name": "R", "fields": fields}, st.fixed_dictionaries(values)


@given(st.data())
def test_records_when_read_by_compiled_code_then_the_same_values_and_errors(
    data: st.DataObject,
) -> None:
    schema, values = data.draw(flat_records())
    good = values.map(lambda value: avro_bytes(schema, value))
    cut = good.flatmap(lambda each: st.integers(0, len(each)).map(lambda end: each[:end]))
    changed = st.tuples(cut, st.binary(max_size=9), cut).map(b"".join)
    payloads = data.draw(st.lists(good | cut | changed | st.none(), max_size=6))
    array = pa.array([b"before", *payloads], pa.binary())[1:]

    text = avro_text(schema)
    compiled, slow = AvroColumn(text), ByFastavro(text)
    assert compiled.rows is not None
    found, errors = ColumnDecoder(compiled, text, None).decode(array)
    expected, expected_errors = ColumnDecoder(slow, text, None).decode(array)

    found.validate(full=True)
    assert found.type == expected.type
    assert _numbers(found) == _numbers(expected)
    assert errors.keys() == expected_errors.keys()


def _numbers(rows: pa.Array) -> tuple[str, ...]:
    """Return the columns as text; dates as numbers, as Python's dates end with the year 9999."""
    if isinstance(rows, pa.StructArray):
        inner = (text for column in rows.flatten() for text in _numbers(column))
        return (str(rows.is_null().to_pylist()), *inner)
    if pa.types.is_temporal(rows.type):
        rows = rows.view(pa.int32() if rows.type.bit_width == 32 else pa.int64())
    return (str(rows.to_pylist()),)


@pytest.mark.parametrize(
    "kind", [{"type": "array", "items": "int"}, ["int", "long"], ["null", "int", "string"], ["int"]]
)
def test_schema_when_it_has_other_leaves_then_fastavro_reads_it(kind: object) -> None:
    assert AvroColumn(avro_text(record_of(kind))).rows is None


def test_int_when_its_bytes_are_of_a_larger_number_then_undecodable_as_by_fastavro() -> None:
    long, text = record_of("long"), avro_text(record_of("int"))
    payloads = [avro_bytes(long, {"x": number}) for number in (1 << 31, -1, -(1 << 31) - 1)]

    for column in (AvroColumn(text), ByFastavro(text)):
        found, errors = ColumnDecoder(column, text, None).decode(pa.array(payloads, pa.binary()))

        assert found.to_pylist() == [None, {"x": -1}, None]
        assert sorted(errors) == [0, 2]


def record_of(kind: object) -> dict[str, object]:
    return {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}
