"""Encodes and decodes the description of a ledger in the index of a streamed object (PIP-76).

The description is a message of Pulsar's managed ledger (rsm/layout/proto/managed_ledger.proto).
Pulsar's reader needs the number of entries. LedgerInfo keeps all fields, so a decoded message
encodes to the same bytes. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from rsm.layout.block_v2.offload_context import (
    OffloadContext,
    Properties,
    context_from_message,
    context_to_message,
    properties_from_messages,
    properties_to_messages,
)
from rsm.layout.blocks.ledger_metadata import LedgerMetadata, LedgerState
from rsm.layout.proto import managed_ledger_pb2 as pb
from rsm.segment.errors import CorruptError
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerInfo:
    """Represents a ledger of `entry_count` entries, with ids from 0 and `size_bytes` of data.

    For a closed ledger, both count the whole ledger, which may be in several objects. An open
    ledger has no `closed_ms`: `entry_count` counts the entries up to the end of the object, and
    `size_bytes` only the data in the object. A field is None if the message lacks it.
    """

    ledger_id: int
    entry_count: int | None = None
    size_bytes: int | None = None
    closed_ms: int | None = None
    offload_context: OffloadContext | None = None
    properties: Properties = ()
    unknown_fields: bytes = b""

    def metadata(self, last_entry_id: int) -> LedgerMetadata:
        """Return the ledger's metadata, as Pulsar's reader derives it."""
        return LedgerMetadata(
            length_bytes=self.size_bytes or 0,
            last_entry_id=last_entry_id,
            state=LedgerState.OPEN if self.closed_ms is None else LedgerState.CLOSED,
        )


def encode_ledger_info(info: LedgerInfo) -> bytes:
    """Encode the message with its fields in ascending order of number, as Pulsar does."""
    context = info.offload_context
    message = pb.LedgerInfo(
        ledger_id=info.ledger_id,
        entries=info.entry_count,
        size=info.size_bytes,
        timestamp=info.closed_ms,
        offload_context=None if context is None else context_to_message(context),
        property=properties_to_messages(info.properties),
    )
    restore_unknown_fields(message, info.unknown_fields)
    return message.SerializeToString(deterministic=True)


def decode_ledger_info(content: bytes) -> LedgerInfo:
    """Decode the message. Raises CorruptError if it is invalid or lacks the ledger's id."""
    try:
        message = pb.LedgerInfo.FromString(content)
    except DecodeError as error:
        raise CorruptError("the ledger info is invalid: it is not protobuf") from error
    if not message.HasField("ledger_id"):
        raise CorruptError("the ledger info lacks a field", expected="ledger_id", found="nothing")
    if message.entries < 0 or message.size < 0:
        found = f"entries {message.entries}, size {message.size}"
        raise CorruptError("a field of the ledger info is negative", expected=">= 0", found=found)
    has_context = message.HasField("offload_context")
    return LedgerInfo(
        ledger_id=message.ledger_id,
        entry_count=message.entries if message.HasField("entries") else None,
        size_bytes=message.size if message.HasField("size") else None,
        closed_ms=message.timestamp if message.HasField("timestamp") else None,
        offload_context=context_from_message(message.offload_context) if has_context else None,
        properties=properties_from_messages(message.property),
        unknown_fields=unknown_fields(message),
    )
