"""Limits the number of connections, in total and from each address. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rlm.gateway.model.disconnect_cause import DisconnectCause


class ConnectionSlot:
    """Represents the slot of one open connection. Not thread-safe."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def leave(self) -> None:
        """Release the slot when the connection has ended. Idempotent."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


class ConnectionRoom:
    """Represents the slots for connections. Memory: one entry for each connected address.

    Not thread-safe.
    """

    def __init__(self, *, limit_count: int, limit_count_of_address: int) -> None:
        self._limit_count = limit_count
        self._limit_count_of_address = limit_count_of_address
        self._of_address: Counter[str] = Counter()
        self.taken_count = 0

    def enter(self, address: str) -> ConnectionSlot | DisconnectCause:
        """Take a slot for a connection; return the disconnect cause if no slot is free."""
        if self.taken_count >= self._limit_count:
            return DisconnectCause.TOO_MANY_CONNECTIONS
        if self._of_address[address] >= self._limit_count_of_address:
            return DisconnectCause.TOO_MANY_CONNECTIONS_OF_ADDRESS
        self._of_address[address] += 1
        self.taken_count += 1
        return ConnectionSlot(lambda: self._release(address))

    def _release(self, address: str) -> None:
        self.taken_count -= 1
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]
