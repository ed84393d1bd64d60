"""Writes received bytes, whose buffer is reused at once, to a transport."""

from __future__ import annotations

import asyncio
import sys

from rlm.wire.schema import Buffer

# From Python 3.12 on, asyncio keeps unsent data by reference; before, it copies the data.
_KEEPS_WHAT_IT_IS_GIVEN = sys.version_info >= (3, 12)


def write_received(transport: asyncio.WriteTransport, data: Buffer) -> None:
    """Write to a transport data that is valid only during the call."""
    transport.write(bytes(data) if _KEEPS_WHAT_IT_IS_GIVEN else data)
