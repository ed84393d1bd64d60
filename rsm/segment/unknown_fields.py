"""Fields of a message that only a newer version knows, kept as bytes so that no rewrite loses them.

What reads a message into a value keeps them beside it, and what writes the value as a message
again puts them back: the message's own always, those of a message within it wherever that one is
written as it was read. A part that is another now, such as the writer, has none of the old one's.
"""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def unknown_fields(message: Message) -> bytes:
    """What types here do not know of a message; empty if they know all of it.

    Messages within it that have such fields are kept with all that they say, so that they are found
    again.
    """
    if _known_part(message).ByteSize() == message.ByteSize():
        return b""
    return _without_the_known(message).SerializeToString()


def restore_unknown_fields(message: Message, kept: bytes) -> None:
    """Put what `unknown_fields` kept back into a message that was written again."""
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
    """The message's unknown fields, and the fields whose messages have any, whole."""
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
