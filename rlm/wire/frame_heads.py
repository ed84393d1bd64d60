"""Reads a frame's first bytes, which are enough to relay an unchanged message.

    request    api key, version, correlation id, nullable string client id [, tags]
    response   correlation id [, tags]

The client id has the same form in all versions, and the tags come after it. So the fields before
the tags do not depend on the API. Version 0 of the request's head has no client id. Only version 0
of ControlledShutdown, a request between brokers, uses it; Kafka 4.0 removed both.

Source: RequestHeader.json and ResponseHeader.json of kafka-clients, KIP-482.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from rlm.wire.api.produce import PRODUCE
from rlm.wire.reading import read_unsigned_varint
from rlm.wire.schema import Buffer
from rsm.segment.errors import CorruptError

_REQUEST = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_NULL = -1
_TRANSACTIONAL_PRODUCE_VERSION = 3
_MAX_HEAD_BYTES = 0x20000  # Two strings of maximum length and a few tags fit; no client sends more.
_MAX_TAG_COUNT = 16  # It is low, because tags are read again after each received piece of a head.


class RequestHead(NamedTuple):
    """Represents a request's head; its tags, then its message, begin at `end_position`."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    end_position: int


def read_request_head(data: Buffer, *, frame_bytes: int) -> RequestHead | None:
    """Read the head of a request frame from `data`, the frame's bytes so far.

    Neither `data` nor `frame_bytes` includes the frame's size field. Returns None until `data`
    contains the whole head without its tags, at most 32,777 bytes. Raises CorruptError if a frame
    of `frame_bytes` cannot contain the head, or if the length of the client id is invalid.
    Replaces invalid UTF-8 in a client id, as brokers do.
    """
    if len(data) < _REQUEST.size:
        _check_fits(_REQUEST.size, frame_bytes)
        return None
    api_key, api_version, correlation_id, length = _REQUEST.unpack_from(data)
    if length == _NULL:
        return RequestHead(api_key, api_version, correlation_id, None, _REQUEST.size)
    end = _REQUEST.size + length
    if length < 0:
        raise CorruptError("the client id is invalid: its length is below -1", length_bytes=length)
    _check_fits(end, frame_bytes)
    if len(data) < end:
        return None
    client_id = str(data[_REQUEST.size : end], "utf-8", "replace")
    return RequestHead(api_key, api_version, correlation_id, client_id, end)


def read_produce_acks(data: Buffer, head: RequestHead, *, frame_bytes: int) -> int | None:
    """Read `acks` of a Produce request after its head; a request with 0 gets no response.

    `data` and errors are as in `read_request_head`. The head's tags, at most 16, and the
    transactional id precede `acks`. Returns None until `data` contains `acks`. Also raises
    CorruptError if `acks` is not in the first 128 KiB.
    """
    flexible = head.api_version in PRODUCE.flexible
    try:
        position = _after_tags(data, head.end_position) if flexible else head.end_position
        if head.api_version >= _TRANSACTIONAL_PRODUCE_VERSION:
            position = _after_nullable_string(data, position, compact=flexible)
        (acks,) = _INT16.unpack_from(data, position)
    except (IndexError, struct.error):
        _check_fits(len(data) + 1, frame_bytes)
        return None
    return int(acks)


def read_correlation_id(data: Buffer) -> int | None:
    """Read the correlation id of a response frame; return None until the id has arrived."""
    if len(data) < _CORRELATION_ID.size:
        return None
    return int(_CORRELATION_ID.unpack_from(data)[0])


def _check_fits(needed_bytes: int, frame_bytes: int) -> None:
    if needed_bytes > min(frame_bytes, _MAX_HEAD_BYTES):
        raise CorruptError(
            "the head of a request is invalid: it exceeds its frame or the limit",
            frame_bytes=frame_bytes,
            limit_bytes=_MAX_HEAD_BYTES,
        )


def _after_tags(data: Buffer, position: int) -> int:
    count, position = read_unsigned_varint(data, position)
    if count > _MAX_TAG_COUNT:
        raise CorruptError(
            "the head of a request is invalid: it has too many tags",
            tag_count=count,
            limit=_MAX_TAG_COUNT,
        )
    for _ in range(count):
        _, position = read_unsigned_varint(data, position)
        size_bytes, position = read_unsigned_varint(data, position)
        position += size_bytes
    return position


def _after_nullable_string(data: Buffer, position: int, *, compact: bool) -> int:
    length: int
    if compact:
        length, position = read_unsigned_varint(data, position)
        return position + max(length - 1, 0)
    (length,) = _INT16.unpack_from(data, position)
    if length < _NULL:
        raise CorruptError("a string is invalid: its length is below -1", length_bytes=length)
    return position + 2 + max(length, 0)
