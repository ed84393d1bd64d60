"""Bytes and values of rlm's codec, compared with those of an independent implementation."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from rlm.wire.codec import encode
from rlm.wire.frames import RequestHeader, ResponseHeader
from rlm.wire.schema import ArrayOf, Message, fields_of
from tests.example_counts import examples
from tests.unit.rlm.wire.message_strategies import ALL_MESSAGES, messages

_KNOWN_ERRORS = st.sampled_from(sorted(int(code) for code in KioErrorCode))
# Where kio is narrower than the protocol: an enumeration, and times before 1970.
_WITHIN_KIO = {
    "error_code": _KNOWN_ERRORS,
    "acknowledge_error_code": _KNOWN_ERRORS,
    "log_append_time_ms": st.integers(0, 2**40),
}
_MILLISECOND = datetime.timedelta(milliseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _kio_type(message_type: type[Message], version: int) -> Any:
    kind = re.search(r"(Request|Response)$", message_type.__name__)
    assert kind is not None
    api = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", message_type.__name__[: kind.start()]).lower()
    module = importlib.import_module(f"kio.schema.{api}.v{version}.{kind.group().lower()}")
    return getattr(module, message_type.__name__)


def _leaves(value: object) -> Iterator[object]:
    """Values in the order of writing, in one spelling for both implementations."""
    if isinstance(value, tuple):
        yield len(value)
        for each in value:
            yield from _leaves(each)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "unknown_tags":
                yield from _leaves(getattr(value, field.name))
    elif isinstance(value, datetime.timedelta):
        yield value // _MILLISECOND
    elif isinstance(value, datetime.datetime):
        yield (value - _EPOCH) // _MILLISECOND
    elif isinstance(value, UUID):
        yield None if value.int == 0 else value
    else:
        yield value


def _carried(message: Message, version: int) -> Iterator[object]:
    for field in fields_of(type(message)):
        if version not in field.versions:
            continue
        value = getattr(message, field.name)
        if isinstance(field.type, ArrayOf) and value and isinstance(value[0], Message):
            yield len(value)
            for each in value:
                yield from _carried(each, version)
        elif isinstance(value, Message):
            yield from _carried(value, version)
        else:
            yield from _leaves(value)


@pytest.mark.parametrize(
    ("message_type", "version", "flexible"),
    [case[1:] for case in ALL_MESSAGES],
    ids=[case[0] for case in ALL_MESSAGES],
)
@settings(max_examples=examples(1 / 16))  # for each of many versions
@given(data=st.data())
def test_message_when_read_and_written_by_kio_then_same_values_and_bytes(
    data: st.DataObject, message_type: type[Message], version: int, flexible: bool
) -> None:
    kio_type = _kio_type(message_type, version)
    message = data.draw(
        messages(message_type, version, flexible=flexible, unknown_tags=False, special=_WITHIN_KIO)
    )

    encoded = encode(message, version, flexible=flexible)

    theirs, read_bytes = entity_reader(kio_type)(encoded, 0)
    assert read_bytes == len(encoded)
    assert list(_leaves(theirs)) == list(_carried(message, version))
    written = io.BytesIO()
    entity_writer(kio_type)(written, theirs)
    assert written.getvalue() == encoded


@pytest.mark.parametrize("version", [1, 2])
@given(data=st.data())
def test_request_header_when_read_by_kio_then_same_values(
    data: st.DataObject, version: int
) -> None:
    module = importlib.import_module(f"kio.schema.request_header.v{version}.header")
    header = data.draw(messages(RequestHeader, version, flexible=version > 1, unknown_tags=False))

    encoded = encode(header, version, flexible=version > 1)

    theirs, read_bytes = entity_reader(module.RequestHeader)(encoded, 0)
    assert read_bytes == len(encoded)
    assert list(_leaves(theirs)) == list(_carried(header, version))


@pytest.mark.parametrize("version", [0, 1])
@given(data=st.data())
def test_response_header_when_read_by_kio_then_same_values(
    data: st.DataObject, version: int
) -> None:
    module = importlib.import_module(f"kio.schema.response_header.v{version}.header")
    header = data.draw(messages(ResponseHeader, version, flexible=version > 0, unknown_tags=False))

    encoded = encode(header, version, flexible=version > 0)

    theirs, read_bytes = entity_reader(module.ResponseHeader)(encoded, 0)
    assert read_bytes == len(encoded)
    assert list(_leaves(theirs)) == list(_carried(header, version))
