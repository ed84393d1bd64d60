"""Encodes and decodes messages, in every version of the tables.

Decoding is strict and bounded. It checks each length against the remaining bytes, so the work and
memory of a decode are proportional to the received bytes. `decode` raises CorruptError unless the
bytes are exactly one message. Error codes stay numbers and unknown tagged fields stay bytes, so a
decode followed by an encode changes no value.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TypeVar

from rlm.wire.decoder import Decoder, compile_decoder
from rlm.wire.encoder import Encoder, compile_encoder
from rlm.wire.schema import Buffer, Message
from rlm.wire.writing import GatheredOutput
from rsm.segment.errors import CorruptError

MessageT = TypeVar("MessageT", bound=Message)


def encode(message: Message, version: int, *, flexible: bool) -> bytes:
    """Encode a message in `version`.

    Raises UnsupportedError if this version cannot carry a value of the message, ValueError if a
    value does not fit its width.
    """
    out = bytearray()
    _encode_into(out, message, version, flexible=flexible)
    return bytes(out)


def encode_parts(message: Message, version: int, *, flexible: bool) -> list[Buffer]:
    """Encode like `encode`, but in consecutive parts; records stay the caller's own buffers."""
    out = GatheredOutput()
    _encode_into(out, message, version, flexible=flexible)
    return out.parts()


def decode(
    message_type: type[MessageT],
    version: int,
    data: Buffer,
    *,
    flexible: bool,
    position: int = 0,
) -> MessageT:
    """Decode the message that fills `data` from `position` to the end.

    Raises CorruptError if the bytes are not exactly one message. Records are slices of `data`;
    everything else is copied.
    """
    message, position = decode_prefix(
        message_type, version, data, flexible=flexible, position=position
    )
    if position != len(data):
        raise CorruptError(
            "cannot decode the message: bytes follow its end",
            message_type=message_type.__name__,
            version=version,
            left_bytes=len(data) - position,
        )
    return message


def decode_prefix(
    message_type: type[MessageT],
    version: int,
    data: Buffer,
    *,
    flexible: bool,
    position: int = 0,
) -> tuple[MessageT, int]:
    """Decode a message at `position`; return it and the next position. Raises CorruptError."""
    # A class is hashable even if its instances are not.
    decoder = _decoder(message_type, version, flexible)  # type: ignore[arg-type]  # see above
    try:
        message, position = decoder(data, position)
    except (CorruptError, struct.error, IndexError, UnicodeDecodeError) as error:
        raise CorruptError(
            "cannot decode the message: the bytes do not match its format",
            message_type=message_type.__name__,
            version=version,
            reason=error,
        ) from error
    assert isinstance(message, message_type)
    return message, position


def _encode_into(out: bytearray, message: Message, version: int, *, flexible: bool) -> None:
    # A class is hashable even if its instances are not.
    encoder = _encoder(type(message), version, flexible)  # type: ignore[arg-type]  # see above
    try:
        encoder(out, message)
    except struct.error as error:
        raise ValueError(f"a value of {type(message).__name__} does not fit: {error}") from error


# Compiling is pure and the tables are few, so these caches need no limit.
@cache
def _decoder(message_type: type[Message], version: int, flexible: bool) -> Decoder:  # noqa: FBT001
    return compile_decoder(message_type, version, flexible=flexible)


@cache
def _encoder(message_type: type[Message], version: int, flexible: bool) -> Encoder:  # noqa: FBT001
    return compile_encoder(message_type, version, flexible=flexible)
