"""Every row of rlm's tables, compared with the message schemas of Kafka's own client."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from rlm.wire.frames import RequestHeader, ResponseHeader
from rlm.wire.schema import ArrayOf, FieldSchema, Message, Versions, WireType, fields_of
from tests.integration.rlm.wire.kafka_schemas import schema
from tests.unit.rlm.wire.message_strategies import ALL_APIS

_TYPES = {
    "bool": WireType.BOOLEAN,
    "int8": WireType.INT8,
    "int16": WireType.INT16,
    "int32": WireType.INT32,
    "int64": WireType.INT64,
    "uuid": WireType.UUID,
    "string": WireType.STRING,
    "bytes": WireType.BYTES,
    "records": WireType.RECORDS,
}
_DEFAULT_STRUCTURE = "a structure of defaults"
_MESSAGES = [
    *(message for api in ALL_APIS for message in (api.request, api.response)),
    RequestHeader,
    ResponseHeader,
]


def _rows(fields: list[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    for field in fields:
        kind = field["type"].removeprefix("[]")
        primitive = _TYPES.get(kind)
        if field.get("flexibleVersions") == "none":
            primitive = WireType.HEADER_STRING
        yield (
            re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", field["name"]).lower(),
            field["type"].startswith("[]"),
            primitive,
            Versions.parse(field["versions"]),
            Versions.parse(field.get("nullableVersions", "none")),
            field.get("tag"),
            _default(field),
        )
        if primitive is None:
            yield from _rows(field["fields"])


def _default(field: Mapping[str, Any]) -> object:
    text = str(field.get("default", ""))
    if text == "null":
        return None
    if field["type"].startswith("[]"):
        return ()
    if field["type"] == "bool":
        return text == "true"
    if field["type"].startswith("int"):
        return int(text or "0", base=0)
    if field["type"] not in _TYPES:
        return _DEFAULT_STRUCTURE
    return {"uuid": UUID(int=0), "string": "", "bytes": b"", "records": b""}[field["type"]]


def _our_rows(message_type: type[Message]) -> Iterator[tuple[object, ...]]:
    for field in fields_of(message_type):
        element = field.type.element if isinstance(field.type, ArrayOf) else field.type
        nested = None if isinstance(element, WireType) else element
        yield _our_row(field, primitive=None if nested else element)
        if nested is not None:
            yield from _our_rows(nested)


def _our_row(field: FieldSchema, *, primitive: object) -> tuple[object, ...]:
    is_array = isinstance(field.type, ArrayOf)
    default = field.default
    if isinstance(default, Message):
        assert default == type(default)()
        default = _DEFAULT_STRUCTURE
    return (
        field.name,
        is_array,
        primitive,
        field.versions,
        field.nullable,
        field.tag,
        default,
    )


@pytest.mark.parametrize("message_type", _MESSAGES, ids=lambda each: each.__name__)
def test_table_when_compared_with_kafkas_schema_then_every_row_is_the_same(
    message_type: type[Message],
) -> None:
    theirs = schema(message_type.__name__)

    assert list(_our_rows(message_type)) == list(_rows(theirs["fields"]))


@pytest.mark.parametrize("api", ALL_APIS, ids=lambda each: each.name)
def test_api_when_compared_with_kafkas_schema_then_key_and_versions_are_within(api: Any) -> None:
    theirs = schema(api.request.__name__)

    valid = Versions.parse(theirs["validVersions"])
    assert api.key == theirs["apiKey"]
    assert api.flexible == Versions.parse(theirs["flexibleVersions"])
    assert api.versions.first in valid
    assert api.versions.last in valid
