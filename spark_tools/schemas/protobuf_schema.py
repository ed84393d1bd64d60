"""Decodes Protobuf messages to structs. Builds the structs column by column.

An absent field is null if Protobuf tracks its presence; otherwise it has its default. A field that
only the writer's schema has is skipped. A field that only the reader's schema has is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from rsm.segment.errors import CorruptError, UnsupportedError
from spark_tools.schemas.column_types import list_array, map_array, struct_array
from spark_tools.schemas.protobuf_files import file_descriptor
from spark_tools.schemas.schema_text import (
    ColumnSchema,
    Decode,
    NestingBudget,
    RowsReader,
    SchemaText,
)
from spark_tools.schemas.wire_format import message_indexes

_Column = Callable[[Sequence[Any]], pa.Array]
_MICROS = 1_000_000
_TIMESTAMP = "google.protobuf.Timestamp"
_DURATION = "google.protobuf.Duration"

_SCALARS = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_STRING: pa.string(),
}


class ProtobufColumn(ColumnSchema):
    """Decodes one message type of a schema: the named one; the first if no name is given."""

    def __init__(self, reader: SchemaText, message: str | None = None) -> None:
        """Raise UnsupportedError if the schema is invalid or has no column type."""
        self._text = reader
        self._descriptor = _message(reader, message)
        self._class = GetMessageClass(self._descriptor)
        self._type, self._column = _Columns().of_message(self._descriptor)

    @property
    def arrow_type(self) -> pa.DataType:
        return self._type

    def decoder(self, writer: SchemaText | None) -> Decode:
        parse: Decode = self._class.FromString
        if writer is None:
            return parse
        file = self._descriptor.file if writer == self._text else file_descriptor(writer)
        expected = self._descriptor.full_name
        checked: dict[bytes, int] = {}
        written = list(file.message_types_by_name.values())

        def decode(payload: bytes) -> object:
            position = checked.get(payload[:1])
            if position is None:
                indexes, position = message_indexes(payload)
                found = _at(written, indexes)
                if found.full_name != expected:
                    raise CorruptError(
                        "cannot decode the record: its message type is not the column's",
                        found=found.full_name,
                        expected=expected,
                    )
                if position == 1:
                    checked[payload[:1]] = position
            return parse(payload[position:])

        return decode

    @property
    def rows(self) -> RowsReader | None:
        return None

    def array(self, values: Sequence[object]) -> pa.Array:
        return self._column(values)


def _message(reader: SchemaText, name: str | None) -> Descriptor:
    messages = list(file_descriptor(reader).message_types_by_name.values())
    if name is None and messages:
        return messages[0]
    every = list(messages)
    for each in every:
        every += each.nested_types
    found = [each for each in every if name in (each.full_name, each.name)]
    if len(found) != 1:
        names = ",".join(each.full_name for each in every)
        raise UnsupportedError(
            "cannot select a message of the schema: none or several have this name",
            found=name,
            expected=names,
        )
    return found[0]


def _at(messages: Sequence[Descriptor], indexes: Sequence[int]) -> Descriptor:
    """Return the message at these indexes. Raises CorruptError if there is none."""
    found: Descriptor | None = None
    for index in indexes:
        if index >= len(messages):
            raise CorruptError(
                "cannot decode the record: its message indexes name no message of the schema",
                found=indexes,
            )
        found = messages[index]
        messages = found.nested_types
    assert found is not None
    return found


class _Columns:
    """Makes the column builders for one reader's schema."""

    def __init__(self) -> None:
        self._budget = NestingBudget()

    def of_message(self, descriptor: Descriptor) -> tuple[pa.DataType, _Column]:
        """Return a message's type, and a function that builds its column from messages or None."""
        if descriptor.full_name in (_TIMESTAMP, _DURATION):
            is_time = descriptor.full_name == _TIMESTAMP
            kind = pa.timestamp("us", tz="UTC") if is_time else pa.duration("us")
            return kind, lambda messages: pa.array(list(map(_micros, messages)), kind)
        self._budget.enter(descriptor.full_name)
        try:
            fields = [(each.name, *self._of_field(each)) for each in descriptor.fields]
        finally:
            self._budget.leave()
        struct = pa.struct([pa.field(name, kind) for name, kind, _ in fields])
        columns = [column for _, _, column in fields]

        def column(messages: Sequence[Any]) -> pa.Array:
            return struct_array(messages, struct, [each(messages) for each in columns])

        return struct, column

    def _of_field(self, field: FieldDescriptor) -> tuple[pa.DataType, _Column]:
        """Return a field's type, and a function that builds its column from messages or None."""
        name = field.name
        if not field.is_repeated:
            kind, column = self._of_values(field)
            if not field.has_presence:
                return kind, lambda messages: column(
                    [None if each is None else getattr(each, name) for each in messages]
                )
            return kind, lambda messages: column(
                [
                    getattr(each, name) if each is not None and each.HasField(name) else None
                    for each in messages
                ]
            )
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            key_type, keys = self._of_values(message.fields_by_name["key"])
            item_type, items = self._of_values(message.fields_by_name["value"])
            mapped = pa.map_(key_type, item_type)

            def map_column(messages: Sequence[Any]) -> pa.Array:
                maps = [None if each is None else dict(getattr(each, name)) for each in messages]
                given = [each for each in maps if each is not None]
                all_items = list(chain.from_iterable(each.values() for each in given))
                return map_array(
                    maps, mapped, keys(list(chain.from_iterable(given))), items(all_items)
                )

            return mapped, map_column
        kind, column = self._of_values(field)
        listed = pa.list_(pa.field("element", kind))

        def list_column(messages: Sequence[Any]) -> pa.Array:
            lists = [None if each is None else getattr(each, name) for each in messages]
            given = (each for each in lists if each is not None)
            return list_array(lists, listed, column(list(chain.from_iterable(given))))

        return listed, list_column

    def _of_values(self, field: FieldDescriptor) -> tuple[pa.DataType, _Column]:
        """Return the type of single values, and a function that builds a column from them."""
        if field.message_type is not None:
            return self.of_message(field.message_type)
        self._budget.enter("")
        self._budget.leave()
        if field.enum_type is not None:
            names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
            return pa.string(), lambda values: pa.array(
                [None if each is None else names.get(each, str(each)) for each in values],
                pa.string(),
            )
        if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
            unsigned = pa.decimal128(20, 0)
            return unsigned, lambda values: pa.array(
                [None if each is None else Decimal(each) for each in values], unsigned
            )
        is_binary = field.type == FieldDescriptor.TYPE_BYTES
        kind = pa.binary() if is_binary else _SCALARS[field.cpp_type]
        return kind, lambda values: pa.array(values, kind)


def _micros(message: Any) -> int | None:  # noqa: ANN401 - a Timestamp or a Duration
    if message is None:
        return None
    micros: int = message.seconds * _MICROS + message.nanos // 1000
    return micros
