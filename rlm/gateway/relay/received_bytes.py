"""Handing on what was just received, whose buffer is used again at once."""

from __future__ import annotations

import asyncio
import sys

from rlm.wire.schema import Buffer

# From that version on, asyncio keeps what a socket does not take as it was given, not a copy of it.
_KEEPS_WHAT_IT_IS_GIVEN = sys.version_info >= (3, 12)


def write_received(transport: asyncio.WriteTransport, data: Buffer) -> None:
    """Write to a transport what is valid only now."""
    transport.write(bytes(data) if _KEEPS_WHAT_IT_IS_GIVEN else data)
