from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, UnsupportedError
from spark_tools.schemas.column_types import spark_type
from tests.unit.spark_tools.schemas.given_schemas import column_of, decoded, json_text

pytestmark = pytest.mark.unit

_EVERY = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "name": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "is_new": {"type": "boolean"},
        "items": {"type": "array", "items": {"$ref": "#/definitions/item"}},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "other": {},
    },
    "definitions": {"item": {"type": "object", "properties": {"x": {"type": "number"}}}},
}
_TEXT = st.text(max_size=8)
_INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
_OBJECTS = st.fixed_dictionaries(
    {
        "id": _INTEGERS,
        "price": st.none() | _NUMBERS,
        "name": st.none() | _TEXT,
        "is_new": st.booleans(),
        "items": st.lists(st.fixed_dictionaries({"x": _NUMBERS}), max_size=3),
        "tags": st.dictionaries(_TEXT, _TEXT, max_size=3),
        "other": st.none(),
    }
)


@given(st.lists(_OBJECTS, max_size=4))
def test_objects_when_read_then_as_they_were(values: list[dict[str, object]]) -> None:
    payloads = [json.dumps(each).encode() for each in values]

    assert decoded(column_of(json_text(_EVERY)), payloads) == values


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("items"), inner),
    )
)
def test_other_json_when_read_then_a_value_or_an_error(value: object) -> None:
    with suppress(CorruptError, ValueError, OverflowError):
        decoded(column_of(json_text(_EVERY)), [json.dumps(value).encode()])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id":"one"}',
        b'{"id":true}',
        b"[]",
        b'{"price":NaN}',
        b'{"price":-Infinity}',
        b'{"price":1e999}',
        b'{"other":[NaN]}',
        b'{"unknown":Infinity}',
        b'{"other":1e999}',
    ],
)
def test_payload_when_it_is_not_of_the_schema_then_an_error(payload: bytes) -> None:
    with pytest.raises((CorruptError, ValueError, RecursionError)):
        decoded(column_of(json_text(_EVERY)), [payload])


def test_fields_when_absent_or_of_no_one_type_then_null_or_text() -> None:
    column = column_of(json_text(_EVERY))
    absent = dict.fromkeys(_EVERY["properties"])

    assert decoded(column, [b"{}", b'{"id":1.0,"other":[1,{"a":2}]}', b"null"]) == [
        absent,
        {**absent, "id": 1, "other": '[1,{"a":2}]'},
        None,
    ]
    assert spark_type(column.arrow_type, quoted=True) == (
        "struct<`id`:bigint,`price`:double,`name`:string,`is_new`:boolean,"
        "`items`:array<struct<`x`:double>>,`tags`:map<string,string>,`other`:string>"
    )


def test_references_when_given_then_found_by_name() -> None:
    item = json_text({"definitions": {"a/b": {"type": "integer"}}})
    schema = json_text(
        {"type": "object", "properties": {"x": {"$ref": "item.json#/definitions/a~1b"}}},
        ("item.json", item),
    )

    assert decoded(column_of(schema), [b'{"x":3}']) == [{"x": 3}]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"$ref": "#/definitions/absent"},
        {"$ref": "http://127.0.0.1/schema.json"},
        {"type": [{}]},
        {"properties": {"a": {"type": ["string", ["x"]]}}},
        {"properties": {"a": {"type": "string"}, "A": {"type": "string"}}},
    ],
)
def test_schema_when_columns_cannot_have_it_then_refused(schema: object) -> None:
    with pytest.raises(UnsupportedError):
        column_of(json_text(schema))


_WORDS = st.sampled_from(
    ["type", "properties", "items", "oneOf", "additionalProperties", "$ref", "object", "array", "#"]
)


@given(
    st.recursive(
        st.none() | st.integers() | _WORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
        max_leaves=12,
    )
)
def test_schema_when_hostile_then_a_column_or_refused(schema: object) -> None:
    with suppress(UnsupportedError):
        assert spark_type(column_of(json_text(schema)).arrow_type, quoted=True)
