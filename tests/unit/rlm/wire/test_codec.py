from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.wire.api.api_versions import ApiVersionsResponse
from rlm.wire.api.delete_records import DeleteRecordsRequest
from rlm.wire.api.fetch import FETCH, PartitionData
from rlm.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rlm.wire.api.metadata import MetadataRequest
from rlm.wire.api.sasl_authenticate import SaslAuthenticateRequest
from rlm.wire.api.share_fetch import PartitionData as SharedPartitionData
from rlm.wire.codec import decode, encode, encode_parts
from rlm.wire.schema import Message
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.example_counts import examples
from tests.unit.rlm.wire.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from tests.unit.rlm.wire.message_strategies import ALL_MESSAGES, messages

_EACH = pytest.mark.parametrize(
    ("message_type", "version", "flexible"),
    [case[1:] for case in ALL_MESSAGES],
    ids=[case[0] for case in ALL_MESSAGES],
)
_FEW = settings(max_examples=examples(1 / 16))  # for each of many versions


@_EACH
@_FEW
@given(data=st.data())
def test_message_when_encoded_and_decoded_then_equal(
    data: st.DataObject, message_type: type[Message], version: int, flexible: bool
) -> None:
    message = data.draw(messages(message_type, version, flexible=flexible))

    encoded = encode(message, version, flexible=flexible)

    assert decode(message_type, version, encoded, flexible=flexible) == message
    assert decode(message_type, version, memoryview(encoded), flexible=flexible) == message


@_EACH
@_FEW
@given(data=st.data())
def test_message_when_cut_short_then_corrupt(
    data: st.DataObject, message_type: type[Message], version: int, flexible: bool
) -> None:
    message = data.draw(messages(message_type, version, flexible=flexible))
    encoded = encode(message, version, flexible=flexible)
    if not encoded:
        return  # the request of ApiVersions 0 to 2 has no bytes to cut off

    cut = data.draw(st.integers(0, len(encoded) - 1))

    with pytest.raises(CorruptError):
        decode(message_type, version, encoded[:cut], flexible=flexible)


@_EACH
@_FEW
@given(garbage=st.binary(max_size=120))
def test_garbage_when_decoded_then_corrupt_or_some_message(
    garbage: bytes, message_type: type[Message], version: int, flexible: bool
) -> None:
    try:
        message = decode(message_type, version, garbage, flexible=flexible)
    except CorruptError:
        return

    again = encode(message, version, flexible=flexible)
    assert decode(message_type, version, again, flexible=flexible) == message


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x00\x00\x00\x02"])
def test_array_when_count_exceeds_the_bytes_left_then_corrupt(count: bytes) -> None:
    with pytest.raises(CorruptError):
        decode(DeleteRecordsRequest, 0, count + bytes(5), flexible=False)


def test_array_when_null_is_not_allowed_then_corrupt() -> None:
    with pytest.raises(CorruptError):
        decode(DeleteRecordsRequest, 0, b"\xff\xff\xff\xff" + bytes(4), flexible=False)


def test_varint_when_wider_than_32_bits_then_corrupt() -> None:
    with pytest.raises(CorruptError):
        decode(DeleteRecordsRequest, 2, b"\xff\xff\xff\xff\x7f" + bytes(20), flexible=True)


def test_string_when_not_utf8_then_corrupt() -> None:
    data = b"\x00\x00\x00\x01" + b"\x00\x02\xff\xfe" + bytes(8)

    with pytest.raises(CorruptError):
        decode(DeleteRecordsRequest, 0, data, flexible=False)


@pytest.mark.parametrize("tags", [b"\x02\x65\x00\x64\x00", b"\x02\x65\x00\x65\x00"])
def test_tags_when_not_ascending_then_corrupt(tags: bytes) -> None:
    with pytest.raises(CorruptError):
        decode(DeleteRecordsRequest, 2, b"\x01" + bytes(4) + tags, flexible=True)


def test_tag_when_known_but_longer_than_its_value_then_corrupt() -> None:
    body = bytes(2) + b"\x01" + bytes(4)  # no error, no APIs, not throttled
    tags = b"\x01" + b"\x03\x02\x01\x00"  # tag 3, a boolean, in two bytes

    with pytest.raises(CorruptError):
        decode(ApiVersionsResponse, 3, body + tags, flexible=True)


def test_message_when_bytes_follow_it_then_corrupt() -> None:
    with pytest.raises(CorruptError):
        decode(MetadataRequest, 0, bytes(4) + b"x", flexible=False)


def test_error_code_when_unknown_then_kept() -> None:
    response = ListOffsetsPartitionResponse(partition_index=1, error_code=32000, offset=7)

    encoded = encode(response, 4, flexible=False)

    assert decode(ListOffsetsPartitionResponse, 4, encoded, flexible=False) == response


def test_field_when_version_lacks_it_then_unsupported_instead_of_dropped() -> None:
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=3, timestamp=-1)
    topic = ListOffsetsTopic(name="orders", partitions=(partition,))

    with pytest.raises(UnsupportedError) as raised:
        encode(ListOffsetsRequest(replica_id=-1, topics=(topic,)), 3, flexible=False)

    assert raised.value.context["field"] == "current_leader_epoch"


def test_null_when_version_has_none_then_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        encode(MetadataRequest(topics=None), 0, flexible=False)


def test_number_when_it_does_not_fit_then_value_error() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode(DeleteRecordsRequest(timeout_ms=2**31), 0, flexible=False)


@given(pieces=st.lists(st.binary(max_size=40), max_size=4).map(tuple))
@pytest.mark.parametrize("version", [4, 18])
def test_records_when_in_several_pieces_then_written_as_one_and_read_as_a_slice(
    version: int, pieces: tuple[bytes, ...]
) -> None:
    found = PartitionData(partition_index=3, records=pieces)
    encoded = encode(found, version, flexible=version > 11)

    decoded = decode(PartitionData, version, encoded, flexible=version > 11)

    assert isinstance(decoded.records, memoryview)
    assert decoded.records.obj is encoded
    assert decoded == replace(found, records=b"".join(pieces))


@given(data=st.data())
@_FEW
@pytest.mark.parametrize("version", [4, 11, 18])
def test_records_when_encoded_in_parts_then_same_bytes_and_not_copied(
    data: st.DataObject, version: int
) -> None:
    flexible = version > 11
    message = data.draw(messages(FETCH.response, version, flexible=flexible))
    assert isinstance(message, FETCH.response)

    parts = encode_parts(message, version, flexible=flexible)

    assert b"".join(parts) == encode(message, version, flexible=flexible)
    records = [part.records for topic in message.responses for part in topic.partitions]
    assert [id(part) for part in parts[1:-1:2]] == [
        id(each) for each in records if each is not None
    ]


def test_structure_when_null_then_kept_apart_from_its_defaults() -> None:
    first_page = DescribeTopicPartitionsRequest(cursor=None)
    other_page = DescribeTopicPartitionsRequest(cursor=Cursor())

    encoded = [encode(each, 0, flexible=True) for each in (first_page, other_page)]

    assert encoded[0] != encoded[1]
    assert decode(DescribeTopicPartitionsRequest, 0, encoded[0], flexible=True) == first_page
    assert decode(DescribeTopicPartitionsRequest, 0, encoded[1], flexible=True) == other_page


def test_records_when_null_but_version_has_none_then_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        encode(SharedPartitionData(records=None), 1, flexible=True)


def test_secret_when_message_is_printed_then_absent() -> None:
    assert "hunter2" not in repr(SaslAuthenticateRequest(auth_bytes=b"\0user\0hunter2"))
