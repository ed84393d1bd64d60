"""What goes to the client, in order, and no faster than it takes it.

Memory: what the transport holds (its high-water mark and one piece), what is left of answers whose
memory is accounted for elsewhere until `release`, and what of the broker's was received before it
was paused.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from rlm.gateway.actions import AnswerToClient
from rlm.wire.schema import Buffer

_PIECE_BYTES = 256 * 1024
_JOINED_BYTES = 16 * 1024


class ClientOutput:
    """Of one connection, on its loop."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport
        self._waiting: deque[Buffer | Callable[[], None]] = deque()
        self._is_paused = False
        self._sent_count = 0

    @property
    def sent_count(self) -> int | None:
        """How many pieces of answers have gone out; None while none waits."""
        return self._sent_count if self._waiting else None

    @property
    def is_blocked(self) -> bool:
        """Whether nothing more should be added for now."""
        return self._is_paused or bool(self._waiting)

    def write(self, data: Buffer) -> None:
        """Send what is valid only now."""
        if self._waiting:
            self._waiting.append(bytes(data))
        else:
            self._transport.write(data)

    def answer(self, answer: AnswerToClient) -> None:
        """Send what stays valid until it is released."""
        self._waiting.extend(_joined(answer.parts))
        self._waiting.append(answer.release)
        self._go_on()

    def pause(self) -> None:
        """The transport has enough."""
        self._is_paused = True

    def resume(self) -> None:
        """The transport takes more."""
        self._is_paused = False
        self._go_on()

    def drop(self) -> None:
        """Send nothing more of what waits."""
        while self._waiting:
            each = self._waiting.popleft()
            if callable(each):
                each()

    def _go_on(self) -> None:
        while self._waiting and not self._is_paused:
            each = self._waiting.popleft()
            self._sent_count += 1
            if callable(each):
                each()
            elif len(each) <= _PIECE_BYTES:
                self._transport.write(each)
            else:
                view = memoryview(each)
                self._waiting.appendleft(view[_PIECE_BYTES:])
                self._transport.write(view[:_PIECE_BYTES])


def _joined(parts: list[Buffer]) -> list[Buffer]:
    """Join small parts: each would be a packet of its own."""
    joined: list[Buffer] = []
    small = bytearray()
    for part in parts:
        if len(part) <= _JOINED_BYTES:
            small += part
            continue
        if small:
            joined.append(memoryview(small))
            small = bytearray()
        joined.append(part)
    if small:
        joined.append(memoryview(small))
    return joined
