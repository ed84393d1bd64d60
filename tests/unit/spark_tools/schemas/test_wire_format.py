from __future__ import annotations

import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, UnsupportedError
from spark_tools.schemas.wire_format import HEADER_BYTES, message_indexes, schema_id_of

pytestmark = pytest.mark.unit


@given(
    schema_id=st.integers(0, (1 << 31) - 1),
    indexes=st.lists(st.integers(0, 1 << 20), min_size=1, max_size=8),
    payload=st.binary(max_size=20),
)
def test_header_when_written_by_confluents_client_then_read(
    schema_id: int, indexes: list[int], payload: bytes
) -> None:
    written = SchemaId("PROTOBUF", schema_id, None, indexes).id_to_bytes() + payload

    assert schema_id_of(written) == schema_id
    found, position = message_indexes(written[HEADER_BYTES:])
    assert list(found) == indexes
    assert written[HEADER_BYTES + position :] == payload


@given(st.binary(max_size=100))
def test_header_when_bytes_are_hostile_then_read_or_a_typed_error(payload: bytes) -> None:
    for read in (schema_id_of, message_indexes):
        try:
            read(payload)
        except (CorruptError, UnsupportedError):
            continue


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"", CorruptError),
        (b"\x00\x00\x00\x01", CorruptError),
        (b"{}    ", CorruptError),
        (b"\x01" + bytes(16), UnsupportedError),
    ],
)
def test_header_when_it_is_none_then_refused(payload: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        schema_id_of(payload)
