from __future__ import annotations

import base64
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, UnsupportedError
from spark_tools.schemas.column_types import spark_type
from spark_tools.schemas.protobuf_files import file_descriptor
from spark_tools.schemas.schema_text import ColumnSchema, SchemaText
from tests.unit.spark_tools.schemas.given_schemas import column_of, decoded, protobuf_text

pytestmark = pytest.mark.unit

_EVERY = protobuf_text(
    """
    syntax = "proto3";
    package shop;
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/duration.proto";
    import "shop/item.proto";
    message Order {
      int32 id = 1;
      optional string name = 2;
      repeated shop.Item items = 3;
      map<string, shop.Item> by_name = 4;
      google.protobuf.Timestamp at = 5;
      google.protobuf.Duration took = 6;
      oneof way { bool is_gift = 7; bytes label = 8; }
      uint64 total = 9;
      State state = 10;
      repeated int64 numbers = 11;
      enum State { NEW = 0; PAID = 1; }
    }
    message Other { int32 id = 1; message Inner { int32 id = 1; } }
    """,
    (
        "shop/item.proto",
        protobuf_text('syntax="proto3"; package shop; message Item { double x = 1; }'),
    ),
)


@pytest.fixture(scope="module")
def column() -> ColumnSchema:
    return column_of(_EVERY)


@pytest.fixture(scope="module")
def order() -> type[Message]:
    return GetMessageClass(file_descriptor(_EVERY).message_types_by_name["Order"])


def test_messages_when_read_then_structs(column: ColumnSchema, order: type[Message]) -> None:
    full = order(
        id=1, name="", items=[{"x": 1.5}, {}], by_name={"k": {"x": 2.5}}, label=b"l",
        at=datetime(2024, 5, 6, tzinfo=UTC), took=timedelta(seconds=-1.5),
        total=(1 << 64) - 1, state=1, numbers=[1, -1],
    )  # fmt: skip
    unknown = order(state=9)

    assert decoded(column, [full.SerializeToString(), unknown.SerializeToString()]) == [
        {
            "id": 1,
            "name": "",
            "items": [{"x": 1.5}, {"x": 0.0}],
            "by_name": {"k": {"x": 2.5}},
            "at": datetime(2024, 5, 6, tzinfo=UTC),
            "took": timedelta(seconds=-1.5),
            "is_gift": None,
            "label": b"l",
            "total": Decimal((1 << 64) - 1),
            "state": "PAID",
            "numbers": [1, -1],
        },
        {
            "id": 0,
            "name": None,
            "items": [],
            "by_name": {},
            "at": None,
            "took": None,
            "is_gift": None,
            "label": None,
            "total": Decimal(0),
            "state": "9",
            "numbers": [],
        },
    ]
    assert spark_type(column.arrow_type, quoted=False) == (
        "struct<id:int,name:string,items:array<struct<x:double>>,by_name:map<string,struct<x:double>>,"
        "at:timestamp,took:interval day to second,is_gift:boolean,label:binary,total:decimal(20,0),"
        "state:string,numbers:array<bigint>>"
    )


_COLUMN = column_of(
    protobuf_text(
        """syntax = "proto3";
        message M { string s = 1; repeated N n = 2; }
        message N { map<int32, bytes> b = 1; }
        """
    )
)


@given(payload=st.binary(max_size=200))
def test_payload_when_hostile_then_a_value_or_an_error(payload: bytes) -> None:
    with suppress(Exception):
        decoded(_COLUMN, [payload])


def test_writers_message_when_another_then_an_error(column: ColumnSchema) -> None:
    read = column.decoder(_EVERY)

    assert column.array([read(b"\x00\x08\x05")]).to_pylist()[0]["id"] == 5
    for indexes in (b"\x02\x02", b"\x04\x02\x00", b"\x02\x08", b"\x04\x00\x00", b""):
        with pytest.raises(CorruptError):
            read(indexes)


def test_writers_schema_when_older_or_newer_then_fields_by_number() -> None:
    old = protobuf_text('syntax = "proto3"; message M { int32 id = 1; string gone = 2; }')
    new = protobuf_text(
        'syntax = "proto3"; message First {} message M { int64 id = 1; int32 added = 3; }'
    )
    column = column_of(new, "M")
    written = GetMessageClass(file_descriptor(old).message_types_by_name["M"])(id=4, gone="x")

    read = column.decoder(old)

    assert column.array([read(b"\x00" + written.SerializeToString())]).to_pylist() == [
        {"id": 4, "added": 0}
    ]


def test_schema_when_a_descriptor_in_base64_then_the_same() -> None:
    """Confluent's Python serializer registers descriptors in base64."""
    file = FileDescriptorProto()
    file_descriptor(_EVERY.references[0][1]).CopyToProto(file)
    text = base64.b64encode(file.SerializeToString()).decode()

    assert (
        column_of(protobuf_text(text)).arrow_type == column_of(_EVERY.references[0][1]).arrow_type
    )


_ONE = 'syntax = "proto3"; message M { int32 a = 1; }'


@pytest.mark.parametrize(
    "schema",
    [
        protobuf_text('syntax = "proto3"; message M { M next = 1; }'),
        protobuf_text("message"),
        protobuf_text('syntax = "proto3"; import "absent.proto"; message M {}'),
        protobuf_text('syntax = "proto3"; import "../a.proto";', ("../a.proto", protobuf_text(""))),
        protobuf_text(
            'syntax = "proto3"; message M { int32 a = 1; }', ("/a.proto", protobuf_text(""))
        ),
        protobuf_text(_ONE, ("a", protobuf_text("")), ("a/b", protobuf_text(""))),
        protobuf_text(_ONE, ("a/b", protobuf_text("")), ("a", protobuf_text(""))),
        protobuf_text(_ONE, ("a", protobuf_text("")), ("./a", protobuf_text(""))),
        protobuf_text(_ONE, ("a/../../b", protobuf_text(""))),
        protobuf_text(_ONE, (".", protobuf_text(""))),
        protobuf_text(_ONE, ("a" * 300, protobuf_text(""))),
        protobuf_text(_ONE, ("\0", protobuf_text(""))),
        protobuf_text(_ONE, ("\ud800", protobuf_text(""))),
        protobuf_text('syntax = "proto3"; message M {}'),
        protobuf_text(
            'syntax = "proto3"; message M { int32 a = 1; repeated N n = 2; } message N {}'
        ),
        protobuf_text('syntax = "proto3"; message M { int32 a = 1; int32 A = 2; }'),
    ],
)
def test_schema_when_columns_cannot_have_it_then_refused(schema: SchemaText) -> None:
    with pytest.raises(UnsupportedError):
        column_of(schema)


def test_message_when_it_is_not_in_the_file_then_refused() -> None:
    schema = protobuf_text('syntax = "proto3"; package p; message M { int32 a = 1; }')

    with pytest.raises(UnsupportedError, match=r"expected=p\.M"):
        column_of(schema, "N")
