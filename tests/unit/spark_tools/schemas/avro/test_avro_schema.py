from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, UnsupportedError
from spark_tools.schemas.column_types import spark_type
from spark_tools.schemas.schema_text import SchemaFormat, SchemaText
from tests.unit.spark_tools.schemas.given_schemas import (
    avro_bytes,
    avro_text,
    column_of,
    decoded,
)

pytestmark = pytest.mark.unit


def record(name: str, /, **fields: object) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": each, "type": kind} for each, kind in fields.items()],
    }


_SCALARS = {
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=8),
    "string": st.text(max_size=8),
}


@st.composite
def schemas_with_values(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a schema, and values of it."""
    kinds = [*_SCALARS, "nullable", *(("array", "map", "record") if depth else ())]
    kind = draw(st.sampled_from(kinds))
    if kind == "record":
        fields = [draw(schemas_with_values(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        names = [f"f{number}" for number in range(len(fields))]
        schema = record(
            f"R{draw(st.uuids()).hex}", **{n: s for n, (s, _) in zip(names, fields, strict=True)}
        )
        return schema, st.fixed_dictionaries(
            {n: values for n, (_, values) in zip(names, fields, strict=True)}
        )
    if kind == "nullable":
        name = draw(st.sampled_from(list(_SCALARS)))
        return ["null", name], st.none() | _SCALARS[name]
    if kind in _SCALARS:
        return kind, _SCALARS[kind]
    inner, values = draw(schemas_with_values(depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    return {"type": "map", "values": inner}, st.dictionaries(
        st.text(max_size=3), values, max_size=3
    )


@given(st.data())
def test_values_when_written_by_fastavro_then_read_as_they_were(data: st.DataObject) -> None:
    schema, values = data.draw(schemas_with_values())
    written = data.draw(st.lists(values, max_size=4))

    column = column_of(avro_text(schema))

    assert decoded(column, [avro_bytes(schema, each) for each in written]) == written


@given(payload=st.binary(max_size=200), data=st.data())
def test_payload_when_hostile_then_a_value_or_an_error(payload: bytes, data: st.DataObject) -> None:
    schema, _ = data.draw(schemas_with_values())
    column = column_of(avro_text(schema))

    with suppress(Exception):
        decoded(column, [payload])


def test_logical_types_when_read_then_sparks_types() -> None:
    schema = record(
        "R",
        day={"type": "int", "logicalType": "date"},
        ms={"type": "long", "logicalType": "timestamp-millis"},
        us=["null", {"type": "long", "logicalType": "timestamp-micros"}],
        local={"type": "long", "logicalType": "local-timestamp-millis"},
        price={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        id={"type": "string", "logicalType": "uuid"},
        ns={"type": "long", "logicalType": "timestamp-nanos"},
    )
    column = column_of(avro_text(schema))
    at = datetime(2024, 5, 6, 7, 8, 9, 123_000, tzinfo=UTC)
    value = {
        "day": date(2024, 5, 6),
        "ms": at,
        "us": at,
        "local": at.replace(tzinfo=None),
        "price": Decimal("-12.34"),
        "id": "an id",
        "ns": 5,
    }
    payload = avro_bytes(schema, value)

    assert decoded(column, [payload]) == [value]
    assert spark_type(column.arrow_type, quoted=False) == (
        "struct<day:date,ms:timestamp,us:timestamp,local:timestamp_ntz,price:decimal(9,2),"
        "id:string,ns:bigint>"
    )


def test_unions_when_of_several_types_then_a_member_each() -> None:
    a, b = record("A", x="int"), record("B", x="int")
    schema = record("R", any=["null", "string", a, b], one=["null", "A"], two=["int", "long"])
    column = column_of(avro_text(schema))
    members = {"member0": None, "member1": None, "member2": None}

    found = decoded(
        column,
        [
            avro_bytes(schema, {"any": ("B", {"x": 1}), "one": {"x": 2}, "two": 3}),
            avro_bytes(schema, {"any": "text", "one": None, "two": 1 << 40}),
            avro_bytes(schema, {"any": None, "one": None, "two": 0}),
        ],
    )

    assert found == [
        {"any": {**members, "member2": {"x": 1}}, "one": {"x": 2}, "two": 3},
        {"any": {**members, "member0": "text"}, "one": None, "two": 1 << 40},
        {"any": None, "one": None, "two": 0},
    ]


def test_writers_schema_when_older_or_newer_then_resolved_to_the_readers() -> None:
    """A field removed, one added with a default, one renamed by an alias, one promoted."""
    old = record("R", id="int", gone="string", name="string")
    new = record("R", id="long")
    new["fields"] += [
        {"name": "title", "type": "string", "aliases": ["name"]},
        {"name": "tag", "type": "bytes", "default": "ÿ"},
    ]
    by_new, by_old = (
        column_of(avro_text(new)),
        column_of(avro_text(old | {"fields": old["fields"][:1]})),
    )

    older = avro_bytes(old, {"id": 7, "gone": "x", "name": "n"})

    read = by_new.decoder(avro_text(old))
    assert by_new.array([read(older)]).to_pylist() == [{"id": 7, "title": "n", "tag": b"\xff"}]
    assert by_old.array([by_old.decoder(avro_text(old))(older)]).to_pylist() == [{"id": 7}]


def test_writers_union_of_records_when_the_reader_has_another_order_then_by_name() -> None:
    a, b = record("A", x="int"), record("B", y="int")
    writer, reader = record("R", v=[a, b]), record("R", v=["null", b, a])

    column = column_of(avro_text(reader))
    read = column.decoder(avro_text(writer))

    assert column.array([read(avro_bytes(writer, {"v": ("A", {"x": 5})}))]).to_pylist() == [
        {"v": {"member0": None, "member1": {"x": 5}}}
    ]


def test_references_when_given_then_named_types_are_theirs() -> None:
    item = record("Item", x="int")
    order = record("Order", items={"type": "array", "items": "Item"})
    column = column_of(avro_text(order, ("Item", avro_text(item))))

    payload = avro_bytes(
        record("Order", items={"type": "array", "items": item}), {"items": [{"x": 1}]}
    )

    assert decoded(column, [payload]) == [{"items": [{"x": 1}]}]


def _wide(depth: int) -> Any:
    """Return a schema of a few lines that has 2 ** depth fields."""
    kind: Any = "null"
    for number in range(depth):
        name = f"N{number}"
        kind = record(name, left=kind, right=kind if isinstance(kind, str) else kind["name"])
    return kind


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": record("Empty")},
        record("R", x=["int", "long", "string"]),
        record("R", x={"type": "bytes", "logicalType": "decimal", "precision": 39}),
        _wide(25),
        json.loads('{"type":"array","items":' * 40 + '"int"' + "}" * 40),
        json.loads('{"type":' * 200 + '"int"' + "}" * 200),
        "no type",
        {"type": "record"},
        {"type": "fixed", "name": "F", "size": "x"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": 1 << 70},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "bytes", "logicalType": "decimal", "precision": "x"},
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": -1},
        record("R"),
        record("R", x=record("Empty")),
        record("R", x=[]),
        record("R", x=["null"]),
        record("R", a="int", A="int"),
    ],
    ids=lambda schema: str(schema)[:20],
)
def test_schema_when_columns_cannot_have_it_then_refused(schema: object) -> None:
    with pytest.raises(UnsupportedError):
        column_of(avro_text(schema))


def test_timestamp_when_too_far_for_spark_then_an_error() -> None:
    schema = record("R", at={"type": "long", "logicalType": "timestamp-millis"})
    physical = record("R", at="long")

    with pytest.raises(ValueError, match=r"out of bounds|overflow|multipl"):
        decoded(column_of(avro_text(schema)), [avro_bytes(physical, {"at": 1 << 62})])


@pytest.mark.parametrize("text", ["[" * 100_000, "not JSON", "x" * (1 << 20 | 1)])
def test_schema_when_it_is_no_json_then_refused(text: str) -> None:
    with pytest.raises(UnsupportedError):
        column_of(SchemaText(format=SchemaFormat.AVRO, text=text))


def test_schema_when_a_type_contains_itself_then_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"contains itself.*type=List"):
        column_of(avro_text(record("List", next=["null", "List"])))


_PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}


@pytest.mark.parametrize("kind", ["bytes", "fixed"])
@given(unscaled=st.integers(-(10**38) + 1, 10**38 - 1), padding=st.integers(0, 30))
def test_decimal_when_padded_by_its_sign_then_as_it_was(
    kind: str, unscaled: int, padding: int
) -> None:
    data = unscaled.to_bytes(17 + padding, "big", signed=True)
    physical = {"type": kind, "name": "F", "size": len(data)}

    (found,) = decoded(column_of(avro_text({**_PRICE, **physical})), [avro_bytes(physical, data)])

    assert found == Decimal(f"{unscaled}E-2")


@pytest.mark.parametrize("first", [b"\x01", b"\x7f", b"\x80", b"\xfe", b"\xff\x00"])
def test_decimal_when_too_long_then_refused_before_it_is_a_number(first: bytes) -> None:
    column = column_of(avro_text(record("R", price=_PRICE)))
    payload = avro_bytes(record("R", price="bytes"), {"price": first + b"\x7f" * 400_000})

    with pytest.raises(CorruptError, match="a decimal: it is too long"):
        decoded(column, [payload])


def test_decimal_when_the_writers_scale_differs_then_the_writers_value() -> None:
    writer = record("R", price={**_PRICE, "precision": 9, "scale": 1})
    column = column_of(avro_text(record("R", price=_PRICE)))

    read = column.decoder(avro_text(writer))

    payload = avro_bytes(writer, {"price": Decimal("-12.3")})
    assert column.array([read(payload)]).to_pylist() == [{"price": Decimal("-12.30")}]


_WORDS = st.sampled_from(
    [
        "type",
        "name",
        "fields",
        "items",
        "size",
        "record",
        "fixed",
        "bytes",
        "null",
        "array",
        "logicalType",
        "decimal",
        "precision",
    ]
)


@given(
    st.recursive(
        st.none() | st.integers() | _WORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=5),
        max_leaves=12,
    )
)
def test_schema_when_hostile_then_a_column_or_refused(schema: object) -> None:
    with suppress(UnsupportedError):
        assert spark_type(column_of(avro_text(schema)).arrow_type, quoted=True)
