"""ReadPermits: decides when a fetch may read the store, by the quota and the queue of reads.

A fetch gets a permit at once if no other fetch waits, the quota has bytes left, and the queue has a
free slot. Otherwise the fetch waits for as long as its client allows, and the client that received
least is next. Each permit reserves its expected bytes, so that concurrent fetches together do not
exceed the quota.

The order is start-time fair queueing: the tag of a fetch is the number of bytes that its client has
received, and the lowest tag is next. A client that was idle gets at least the tag of the last
started fetch, so it cannot save up permits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass

from rlm.gateway.remote.fetch_quota import FetchQuota
from rsm.segment.clock import Clock


class FairQueueTags:
    """Represents the clients' tags. The lowest tag is next, so that clients share bytes evenly.

    Pure and not thread-safe. Memory: an entry for each connected client that received bytes.
    """

    def __init__(self) -> None:
        self._reached = 0
        self._served: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._served)

    def tag(self, client: Hashable) -> int:
        """Return the tag of a request that the client sends now."""
        return max(self._reached, self._served.get(client, 0))

    def start(self, tag: int) -> None:
        """Record that a fetch with this tag starts."""
        self._reached = max(self._reached, tag)

    def charge(self, client: Hashable, size_bytes: int) -> None:
        """Record that a client received `size_bytes`."""
        if size_bytes > 0:
            self._served[client] = self.tag(client) + size_bytes

    def forget(self, client: Hashable) -> None:
        """Remove a disconnected client. Idempotent."""
        self._served.pop(client, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PermitRequest:
    client: Hashable
    tag: int
    expected_bytes: int


class ReadPermit:
    """Represents the right of one fetch to read the store. Call `end` exactly once."""

    def __init__(self, permits: ReadPermits, asked: _PermitRequest) -> None:
        self._permits = permits
        self._asked = asked
        self._has_own_slot = True

    def take_slot(self) -> bool:
        """Take a slot in the queue of reads; return False if none is free.

        The first call always succeeds. Return the slot with `ReadPermits.return_slot`.
        """
        if self._has_own_slot:
            self._has_own_slot = False
            return True
        return self._permits.take_slot()

    def end(self, given_bytes: int) -> None:
        """End the permit; the client received `given_bytes`."""
        self._permits.end(self._asked, given_bytes, gives_back=self._has_own_slot)
        self._has_own_slot = False


class ReadPermits:
    """Represents the permits of one event loop. Call all methods on that loop."""

    def __init__(self, *, quota: FetchQuota, slot_count: int, clock: Clock) -> None:
        """At most `slot_count` reads may run or wait for a thread."""
        self._quota = quota
        self.slot_count = slot_count
        self._clock = clock
        self._order = FairQueueTags()
        self._waiting: dict[asyncio.Future[ReadPermit], _PermitRequest] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._reserved_bytes = 0
        self.taken_count = 0

    @property
    def waiting_count(self) -> int:
        """Return how many fetches wait for a permit."""
        return len(self._waiting)

    def throttle_ms(self) -> int:
        """Return how long the quota blocks new fetches; 0 if a fetch may start now."""
        return self._quota.throttle_ms(
            self._clock.monotonic_ms(), reserved_bytes=self._reserved_bytes
        )

    def acquire_now(self, client: Hashable, *, expected_bytes: int) -> ReadPermit | None:
        """Return a permit; None if the fetch would have to wait."""
        if self._waiting or not self._has_room():
            return None
        tag = self._order.tag(client)
        return self._begin(_PermitRequest(client=client, tag=tag, expected_bytes=expected_bytes))

    async def acquire(
        self, client: Hashable, *, expected_bytes: int, wait_ms: int
    ) -> ReadPermit | None:
        """Return a permit; None if the fetch gets none within `wait_ms`."""
        permit = self.acquire_now(client, expected_bytes=expected_bytes)
        if permit is not None:
            return permit
        if wait_ms <= 0:
            return None
        asked = _PermitRequest(
            client=client, tag=self._order.tag(client), expected_bytes=expected_bytes
        )
        coming: asyncio.Future[ReadPermit] = asyncio.get_running_loop().create_future()
        self._waiting[coming] = asked
        self._give_permits()
        try:
            await asyncio.wait([coming], timeout=wait_ms / 1000)
        except asyncio.CancelledError:
            if coming.done():
                coming.result().end(0)
            raise
        finally:
            self._waiting.pop(coming, None)
        return coming.result() if coming.done() else None

    def take_slot(self) -> bool:
        """Take a slot for a further read; return False if none is free."""
        if self.taken_count >= self.slot_count:
            return False
        self.taken_count += 1
        return True

    def return_slot(self) -> None:
        """Return the slot of a read that has ended."""
        self.taken_count -= 1
        self._give_permits()

    def end(self, asked: _PermitRequest, given_bytes: int, *, gives_back: bool) -> None:
        """End a permit (`ReadPermit.end`)."""
        self._reserved_bytes -= asked.expected_bytes
        self._order.charge(asked.client, given_bytes)
        self._quota.charge(given_bytes, self._clock.monotonic_ms())
        if gives_back:
            self.taken_count -= 1
        self._give_permits()

    def forget(self, client: Hashable) -> None:
        """Remove a disconnected client's tag. Idempotent."""
        self._order.forget(client)

    def _has_room(self) -> bool:
        return self.taken_count < self.slot_count and self.throttle_ms() == 0

    def _begin(self, asked: _PermitRequest) -> ReadPermit:
        self._order.start(asked.tag)
        self._reserved_bytes += asked.expected_bytes
        self.taken_count += 1
        return ReadPermit(self, asked)

    def _give_permits(self) -> None:
        """Give permits while there is room; try again when the quota refills."""
        while self._waiting and self._has_room():
            # The dict is in request order, so among equal tags `min` returns the oldest request.
            coming = min(self._waiting, key=lambda each: self._waiting[each].tag)
            coming.set_result(self._begin(self._waiting.pop(coming)))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and (throttle_ms := self.throttle_ms()):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(throttle_ms / 1000, self._give_permits)
