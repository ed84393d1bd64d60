"""Encodes and decodes the companion of a segment: what is stored in addition to its bytes. Pure.

    bytes   content
    0-3     magic 52 4C 4D 43, "RLMC"
    4-5     version, u16 big endian: 1
    6-      protobuf, rsm.layout.Companion (rsm/layout/proto/companion.proto)
    last 5  of the protobuf: its field crc32c, as tag 7D and u32 little endian. The value is the
            CRC32C of all bytes before the tag, including magic and version

The decoder raises UnsupportedError for another version, and CorruptError for any other deviation.
It ignores the fields that a newer writer of this version may add.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from crc32c import crc32c
from google.protobuf.message import DecodeError

from rsm.layout.proto import companion_pb2 as pb
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.local_segment import AbortedTransaction, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.metadata_codec import (
    lineage_from_messages,
    lineage_to_messages,
    metadata_from_message,
    metadata_to_message,
)

MAGIC = b"RLMC"
VERSION = 1

_HEADER = struct.Struct(">4sH")
_TRAILER = struct.Struct("<BI")
# The tag of field 15 (fixed32) takes one byte, so the trailer's length is known.
_TRAILER_TAG = 15 << 3 | 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """Represents the content of a companion object: metadata, indexes and lineage of a segment."""

    metadata: RemoteLogSegmentMetadata
    companions: SegmentCompanions


def encode_companion(companion: Companion) -> bytes:
    """Encode a companion object; equal values give equal bytes."""
    parts = companion.companions
    message = pb.Companion(
        segment=metadata_to_message(companion.metadata),
        offset_index=parts.offset_index,
        time_index=parts.time_index,
        transaction_index=parts.transaction_index,
        producer_snapshot=parts.producer_snapshot,
        lineage=lineage_to_messages(parts.lineage),
        aborted_transactions=[_aborted_to_message(t) for t in parts.aborted_transactions],
    )
    content = _HEADER.pack(MAGIC, VERSION) + message.SerializeToString(deterministic=True)
    return content + _TRAILER.pack(_TRAILER_TAG, crc32c(content))


def decode_companion(content: bytes) -> Companion:
    """Decode a companion object.

    Raises UnsupportedError for an unknown version, CorruptError for other invalid content.
    """
    if len(content) < _HEADER.size + _TRAILER.size:
        raise CorruptError("the object is too short to be a companion", length_bytes=len(content))
    magic, version = _HEADER.unpack_from(content)
    if magic != MAGIC:
        raise CorruptError("the object is not a companion: its magic is wrong", magic=magic.hex())
    if version != VERSION:
        raise UnsupportedError("the companion has an unknown version", version=version)
    message = _checked_message(content)
    if not message.HasField("offset_index") or not message.HasField("time_index"):
        raise CorruptError("the companion lacks an offset index or a time index")
    return Companion(
        metadata=metadata_from_message(message.segment),
        companions=SegmentCompanions(
            offset_index=message.offset_index,
            time_index=message.time_index,
            transaction_index=_optional(message, "transaction_index"),
            producer_snapshot=_optional(message, "producer_snapshot"),
            lineage=lineage_from_messages(list(message.lineage)),
            aborted_transactions=tuple(
                _aborted_from_message(m) for m in message.aborted_transactions
            ),
        ),
    )


def checkpoint_bytes(lineage: Lineage) -> bytes:
    """Encode a lineage as the broker's file `leader-epoch-checkpoint`: version, count, entries."""
    lines = ["0", str(len(lineage.entries))]
    lines += [f"{entry.epoch} {entry.start_offset}" for entry in lineage.entries]
    return ("\n".join(lines) + "\n").encode("ascii")


def _checked_message(content: bytes) -> pb.Companion:
    end_position = len(content) - _TRAILER.size
    tag, stored = _TRAILER.unpack_from(content, end_position)
    computed = crc32c(memoryview(content)[:end_position])
    if tag != _TRAILER_TAG or stored != computed:
        raise CorruptError("the companion's checksum is wrong", stored=stored, computed=computed)
    message = pb.Companion()
    try:
        message.ParseFromString(content[_HEADER.size :])
    except DecodeError as error:
        raise CorruptError("the companion is invalid: it is not protobuf") from error
    return message


def _optional(message: pb.Companion, field: str) -> bytes | None:
    return getattr(message, field) if message.HasField(field) else None


def _aborted_to_message(value: AbortedTransaction) -> pb.AbortedTransaction:
    return pb.AbortedTransaction(
        producer_id=value.producer_id,
        first_offset=value.first_offset,
        last_offset=value.last_offset,
        last_stable_offset=value.last_stable_offset,
    )


def _aborted_from_message(message: pb.AbortedTransaction) -> AbortedTransaction:
    return AbortedTransaction(
        producer_id=message.producer_id,
        first_offset=message.first_offset,
        last_offset=message.last_offset,
        last_stable_offset=message.last_stable_offset,
    )
