"""Reads and writes frames. Each frame is an int32 size, a header and a message.

    request   size, api key, api version, correlation id, client id [, tags], message
    response  size, correlation id [, tags], message

Only flexible versions have tags; the client id is never compact (KIP-482).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from rlm.wire.codec import decode, decode_prefix, encode, encode_parts
from rlm.wire.schema import (
    Api,
    Buffer,
    Message,
    RequestT,
    ResponseT,
    UnknownTags,
    WireType,
    wire,
)
from rsm.segment.errors import CorruptError

SIZE_BYTES = 4
_SIZE = struct.Struct(">i")
_FLEXIBLE_REQUEST_HEADER = 2
_FLEXIBLE_RESPONSE_HEADER = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader(Message):
    """Represents a request's header: API, version, correlation id and client id.

    Invalid UTF-8 in a client id is kept as lone surrogates, so do not display it.
    """

    request_api_key: int = wire(WireType.INT16, "0+")
    request_api_version: int = wire(WireType.INT16, "0+")
    correlation_id: int = wire(WireType.INT32, "0+")
    client_id: str | None = wire(WireType.HEADER_STRING, "1+", nullable="1+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHeader(Message):
    """Represents a response's header: the correlation id of its request."""

    correlation_id: int = wire(WireType.INT32, "0+")


def request_frame(
    api: Api[RequestT, ResponseT],
    version: int,
    message: RequestT,
    *,
    correlation_id: int,
    client_id: str | None,
    header_tags: UnknownTags = (),
) -> bytes:
    """Encode a whole request, its size first. Raises the same errors as `codec.encode`.

    `header_tags` are the header's unknown tagged fields; versions without tags have none.
    """
    header_version = api.request_header_version(version)
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
        unknown_tags=header_tags,
    )
    head = encode(header, header_version, flexible=header_version >= _FLEXIBLE_REQUEST_HEADER)
    body = encode(message, version, flexible=version in api.flexible)
    return _SIZE.pack(len(head) + len(body)) + head + body


def read_response(
    api: Api[RequestT, ResponseT], version: int, frame: Buffer
) -> tuple[ResponseHeader, ResponseT]:
    """Decode a response without its size. Raises CorruptError if it is invalid in `version`."""
    header_version = api.response_header_version(version)
    flexible_header = header_version >= _FLEXIBLE_RESPONSE_HEADER
    header, position = decode_prefix(
        ResponseHeader, header_version, frame, flexible=flexible_header
    )
    flexible = version in api.flexible
    return header, decode(api.response, version, frame, flexible=flexible, position=position)


def read_request(
    api: Api[RequestT, ResponseT], version: int, frame: Buffer
) -> tuple[RequestHeader, RequestT]:
    """Decode a request without its size. Raises CorruptError if it is invalid in `version`."""
    header_version = api.request_header_version(version)
    flexible_header = header_version >= _FLEXIBLE_REQUEST_HEADER
    header, position = decode_prefix(RequestHeader, header_version, frame, flexible=flexible_header)
    flexible = version in api.flexible
    return header, decode(api.request, version, frame, flexible=flexible, position=position)


def response_parts(
    api: Api[RequestT, ResponseT],
    version: int,
    message: ResponseT,
    *,
    correlation_id: int,
    header_tags: UnknownTags = (),
) -> list[Buffer]:
    """Encode a whole response as consecutive parts, its size first.

    The records in `message` become parts and are not copied. `header_tags` and errors are as in
    `request_frame`.
    """
    header_version = api.response_header_version(version)
    header = ResponseHeader(correlation_id=correlation_id, unknown_tags=header_tags)
    head = encode(header, header_version, flexible=header_version >= _FLEXIBLE_RESPONSE_HEADER)
    body = encode_parts(message, version, flexible=version in api.flexible)
    size_bytes = len(head) + sum(map(len, body))
    return [_SIZE.pack(size_bytes) + head, *body]


class FrameBuffer:
    """Cuts received bytes into frames. Not thread-safe.

    Memory: one incomplete frame of at most `max_frame_bytes`, and the bytes that one `add` adds, if
    the caller takes all whole frames before the next `add`.
    """

    def __init__(self, *, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._received = bytearray()

    def add(self, data: Buffer) -> None:
        """Buffer received bytes."""
        self._received += data

    def next_frame(self) -> bytes | None:
        """Return the next frame without its size; None until it is whole.

        As soon as the size is known, raises CorruptError if it is negative or above the limit.
        """
        if len(self._received) < SIZE_BYTES:
            return None
        (size,) = _SIZE.unpack_from(self._received)
        if not 0 <= size <= self._max_frame_bytes:
            raise CorruptError(
                "the frame size is invalid: it is negative or above the limit",
                size_bytes=size,
                limit_bytes=self._max_frame_bytes,
            )
        end = SIZE_BYTES + size
        if len(self._received) < end:
            return None
        frame = bytes(memoryview(self._received)[SIZE_BYTES:end])
        del self._received[:end]
        return frame
