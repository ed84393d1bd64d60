"""Where the responses of Kafka's own schemas have their first error code."""

from __future__ import annotations

from typing import Any

from rlm.gateway.session.misdirected_requests import _FORMS, first_error_code
from rlm.wire.broker_apis import BROKER_APIS
from rlm.wire.schema import Versions
from tests.integration.rlm.wire.kafka_schemas import Schema, schemas

_CODE = 16
_BYTES = {"int8": 1, "bool": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "uuid": 16}


def _encoded(fields: list[Schema], schema: Schema, version: int, *, flexible: bool) -> bytes:
    """Encode a structure with one element in each array, and _CODE as each error code.

    A field marked `is_whole`, the error code of a whole response, gets 0.
    """
    content = b""
    for field in fields:
        if version not in Versions.parse(field["versions"]) or "tag" in field:
            continue
        content += _field(field, schema, version, flexible=flexible)
    return content + (b"\0" if flexible else b"")


def _field(field: Schema, schema: Schema, version: int, *, flexible: bool) -> bytes:
    kind: str = field["type"]
    if kind.startswith("[]"):
        count = b"\2" if flexible else (1).to_bytes(4, "big")
        element = {**field, "type": kind.removeprefix("[]")}
        return count + _field(element, schema, version, flexible=flexible)
    if kind == "string":
        if field.get("nullableVersions"):
            return b"\0" if flexible else b"\xff\xff"
        return (b"\3" if flexible else b"\0\2") + b"ab"
    if kind in ("bytes", "records"):
        return b"\0" if flexible else b"\xff\xff\xff\xff"
    if kind in _BYTES:
        is_code = field["name"].endswith("ErrorCode") and not field.get("is_whole")
        return (_CODE if is_code else 0).to_bytes(_BYTES[kind], "big")
    shared = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}
    inner: list[Any] = field.get("fields") or shared[kind]
    return _encoded(inner, schema, version, flexible=flexible)


def test_first_error_codes_when_encoded_by_kafkas_schemas_then_are_found() -> None:
    found = {}
    for each in schemas("Response"):
        key: int = each.get("apiKey", -1)
        if key not in _FORMS:
            continue
        api = BROKER_APIS[key]
        for version in range(_FORMS[key][0].first_version, api.versions.last + 1):
            flexible = version in api.flexible
            head = (1).to_bytes(4, "big") + (b"\0" if flexible else b"")
            frame = head + _encoded(_fields_of(each), each, version, flexible=flexible)
            found[each["name"], version] = first_error_code(
                key, version, memoryview(frame), frame_bytes=len(frame)
            )

    assert {name for name, _ in found} == {f"{BROKER_APIS[key].name}Response" for key in _FORMS}
    assert {each for each, code in found.items() if code != _CODE} == set()


def _fields_of(schema: Schema) -> list[Schema]:
    """Return the fields; ShareFetch has no error of the whole response if a partition has one."""
    fields: list[Schema] = schema["fields"]
    if schema["name"] != "ShareFetchResponse":
        return fields
    return [{**each, "is_whole": each["name"] == "ErrorCode"} for each in fields]
