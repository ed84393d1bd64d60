"""Bytes and values of rlm's codec, compared with those of Kafka's own Java classes."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.wire.codec import encode
from rlm.wire.schema import FieldSchema, Message, WireType, fields_of
from tests.example_counts import examples
from tests.services.kafka_runtime import java_command
from tests.unit.rlm.wire.message_strategies import ALL_MESSAGES, messages

_SOURCE = Path(__file__).with_name("MessageOracle.java")


class _KafkaMessages:
    """A JVM that reads and writes messages, one line for each."""

    def __init__(self, to_java: IO[str], from_java: IO[str]) -> None:
        self._to_java = to_java
        self._from_java = from_java

    def read_and_write(self, name: str, version: int, encoded: bytes) -> tuple[object, bytes]:
        """Return the message that Kafka reads from the bytes, and the bytes it writes for that."""
        self._to_java.write(f"{name} {version} {encoded.hex()}\n")
        self._to_java.flush()
        found, tab, written = self._from_java.readline().rstrip("\n").partition("\t")
        assert tab, found
        return json.loads(found), bytes.fromhex(written)


@pytest.fixture(scope="module")
def kafka() -> Iterator[_KafkaMessages]:
    command = java_command(str(_SOURCE))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield _KafkaMessages(process.stdin, process.stdout)
        process.stdin.close()


@pytest.mark.parametrize(
    ("message_type", "version", "flexible"),
    [case[1:] for case in ALL_MESSAGES],
    ids=[case[0] for case in ALL_MESSAGES],
)
@settings(max_examples=examples(1 / 20))  # for each of many versions
@given(data=st.data())
def test_message_when_read_and_written_by_kafka_then_same_values_and_bytes(
    data: st.DataObject,
    kafka: _KafkaMessages,
    message_type: type[Message],
    version: int,
    flexible: bool,
) -> None:
    message = data.draw(messages(message_type, version, flexible=flexible))
    encoded = encode(message, version, flexible=flexible)

    found, written = kafka.read_and_write(message_type.__name__, version, encoded)

    assert written == encoded
    assert found == _as_json(message, version)


def _as_json(message: Message, version: int) -> dict[str, Any]:
    """Return the message as Kafka's converters write it, with empty records."""
    return {
        _camel(field.name): _value(field, getattr(message, field.name), version)
        for field in fields_of(type(message))
        if version in field.versions
        if field.tag is None or getattr(message, field.name) != field.default
    }


def _value(field: FieldSchema, value: object, version: int) -> object:
    if field.type is WireType.RECORDS and value is not None:
        return ""
    if isinstance(value, tuple):
        return [_value(field, each, version) for each in value]
    if isinstance(value, Message):
        return _as_json(value, version)
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
