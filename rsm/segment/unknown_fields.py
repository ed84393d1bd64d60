"""Fields of a message that only a newer version knows, kept as bytes so that no rewrite loses them.

What reads a message into a value keeps them beside it, and what writes the value as a message
again merges them into it. Those of nested messages are not kept.
"""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet


def unknown_fields(message: Message) -> bytes:
    """The fields of `message` itself that its type does not know, as they were written."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for field, _ in rest.ListFields():
        rest.ClearField(field.name)
    return rest.SerializeToString()
