"""Encodes, decodes and checks the description of a ledger in its index object. Pure.

The description is BookKeeper's LedgerMetadataFormat (rsm/layout/proto/ledger_metadata.proto).
Pulsar's readers need the length, the last entry id and the state. LedgerMetadata keeps all other
fields too, so a decoded message with these three fields encodes to the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from google.protobuf.message import DecodeError

from rsm.layout.proto import ledger_metadata_pb2 as pb
from rsm.segment.errors import CorruptError
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields


class LedgerState(IntEnum):
    """Lists BookKeeper's states of a ledger. PIP-17 offloads only closed ledgers."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEnsemble:
    """Represents the bookies that stored `first_entry_id` and the entries after it."""

    first_entry_id: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMetadata:
    """Represents the metadata of one ledger. `length_bytes` is the length of its entries' data.

    `digest_type`, `ack_quorum_count`, `created_ms` and `password` are None if absent. `custom` is
    in the order of the message. In BookKeeper its keys are unique; this class allows duplicates.
    """

    length_bytes: int
    last_entry_id: int
    state: LedgerState = LedgerState.CLOSED
    write_quorum_count: int = 1
    ensemble_count: int = 1
    ack_quorum_count: int | None = None
    digest_type: int | None = None
    created_ms: int | None = None
    password: bytes | None = None
    ensembles: tuple[LedgerEnsemble, ...] = ()
    custom: tuple[tuple[str, bytes], ...] = ()
    unknown_fields: bytes = b""

    def custom_value(self, key: str) -> bytes | None:
        """Return the first value of a custom field; None if the field is absent."""
        return next((value for name, value in self.custom if name == key), None)


def encode_ledger_metadata(metadata: LedgerMetadata) -> bytes:
    """Encode the message with its fields in ascending order of number, as BookKeeper does."""
    message = pb.LedgerMetadata(
        write_quorum_count=metadata.write_quorum_count,
        ensemble_count=metadata.ensemble_count,
        length_bytes=metadata.length_bytes,
        last_entry_id=metadata.last_entry_id,
        state=metadata.state,
        ensemble=[
            pb.LedgerEnsemble(
                first_entry_id=each.first_entry_id,
                member=[bytes_of(member) for member in each.members],
            )
            for each in metadata.ensembles
        ],
        digest_type=metadata.digest_type,
        password=metadata.password,
        ack_quorum_count=metadata.ack_quorum_count,
        created_ms=metadata.created_ms,
        custom=[
            pb.LedgerCustomEntry(key=bytes_of(key), value=value) for key, value in metadata.custom
        ],
    )
    restore_unknown_fields(message, metadata.unknown_fields)
    return message.SerializeToString(deterministic=True)


def decode_ledger_metadata(content: bytes) -> LedgerMetadata:
    """Decode the message.

    Raises CorruptError if it is invalid or lacks a field that BookKeeper requires.
    """
    message = pb.LedgerMetadata()
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        raise CorruptError("the ledger metadata is invalid: it is not protobuf") from error
    for field in ("write_quorum_count", "ensemble_count", "length_bytes", "state"):
        if not message.HasField(field):
            raise CorruptError("the ledger metadata lacks a field", expected=field, found="nothing")
    if message.state not in set(LedgerState):
        raise CorruptError(
            "the ledger's state is unknown", expected="1, 2 or 3", found=message.state
        )
    if message.length_bytes < 0 or message.last_entry_id < 0:
        found = f"length {message.length_bytes}, last entry id {message.last_entry_id}"
        raise CorruptError(
            "a field of the ledger metadata is negative", expected=">= 0", found=found
        )
    return LedgerMetadata(
        length_bytes=message.length_bytes,
        last_entry_id=message.last_entry_id,
        state=LedgerState(message.state),
        write_quorum_count=message.write_quorum_count,
        ensemble_count=message.ensemble_count,
        ack_quorum_count=_optional(message, "ack_quorum_count"),
        digest_type=_optional(message, "digest_type"),
        created_ms=_optional(message, "created_ms"),
        password=message.password if message.HasField("password") else None,
        ensembles=tuple(
            LedgerEnsemble(
                first_entry_id=each.first_entry_id,
                members=tuple(map(text_of, each.member)),
            )
            for each in message.ensemble
        ),
        custom=tuple((text_of(each.key), each.value) for each in message.custom),
        unknown_fields=unknown_fields(message),
    )


def _optional(message: pb.LedgerMetadata, field: str) -> int | None:
    return getattr(message, field) if message.HasField(field) else None


def text_of(content: bytes) -> str:
    """Decode a message's text; `bytes_of` restores the same bytes, even if they are not UTF-8."""
    return content.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Encode a text that `text_of` may have decoded."""
    return text.encode("utf-8", "surrogateescape")
