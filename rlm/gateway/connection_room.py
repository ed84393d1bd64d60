"""ConnectionRoom: how many clients may be connected, in all and from one address. Pure."""

from __future__ import annotations

from collections import Counter

from rlm.gateway.close_reason import CloseReason


class ConnectionRoom:
    """Memory: an entry for each address that is connected."""

    def __init__(self, *, limit_count: int, limit_count_of_address: int) -> None:
        self._limit_count = limit_count
        self._limit_count_of_address = limit_count_of_address
        self._of_address: Counter[str] = Counter()
        self.taken_count = 0

    def has(self, count: int) -> bool:
        """Whether so many more would be let in, and one behind them."""
        return self.taken_count + count < self._limit_count

    def enter(self, address: str) -> CloseReason | None:
        """Let one more in, or why not."""
        if not self.has(0):
            return CloseReason.TOO_MANY_CONNECTIONS
        if self._of_address[address] >= self._limit_count_of_address:
            return CloseReason.TOO_MANY_CONNECTIONS_OF_ADDRESS
        self._of_address[address] += 1
        self.taken_count += 1
        return None

    def leave(self, address: str) -> None:
        """One that was let in has gone."""
        self.taken_count -= 1
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]
