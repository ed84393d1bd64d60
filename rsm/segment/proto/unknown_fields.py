"""Keeps the protobuf fields of a newer version as bytes, so that no rewrite loses them.

A decoder stores the bytes with the decoded value, and an encoder restores the fields. It always
restores the message's own fields, and those of a nested message only if that message is unchanged.
For example, metadata with another writer does not get the unknown fields of the old writer.
"""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def unknown_fields(message: Message) -> bytes:
    """Return the unknown fields of a message; empty if all fields are known.

    Nested messages with unknown fields are kept with all of their fields, so that the restore can
    match them.
    """
    if _known_part(message).ByteSize() == message.ByteSize():
        return b""
    return _without_the_known(message).SerializeToString()


def restore_unknown_fields(message: Message, kept: bytes) -> None:
    """Restore the result of `unknown_fields` into a message that was encoded again."""
    if not kept:
        return
    rest = type(message).FromString(kept)
    for field, _ in rest.ListFields():
        candidates = _messages_of(message, field)
        for newer in _messages_of(rest, field):
            known = _known_part(newer)
            if known in candidates:
                candidates.pop(candidates.index(known)).CopyFrom(newer)
        rest.ClearField(field.name)
    message.MergeFrom(rest)


def _without_the_known(message: Message) -> Message:
    """Return the unknown fields, and the known fields whose messages contain unknown fields."""
    rest = type(message)()
    rest.CopyFrom(message)
    for field, _ in message.ListFields():
        if all(each == _known_part(each) for each in _messages_of(message, field)):
            rest.ClearField(field.name)
    return rest


def _messages_of(message: Message, field: FieldDescriptor) -> list[Message]:
    if field.message_type is None:
        return []
    if field.is_repeated:
        return list(getattr(message, field.name))
    return [getattr(message, field.name)] if message.HasField(field.name) else []


def _known_part(message: Message) -> Message:
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known
