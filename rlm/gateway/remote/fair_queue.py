"""ReadPermits: when a client's fetch may read the store, by the quota and the readers' queue.

A turn is one fetch's. It begins while the quota has something left and the queue has a place; else
it waits for as long as the client may be let wait, and who was given least is next. What turns that
are under way expect to give is set aside, so that many at once don't exceed the quota together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass

from rlm.gateway.remote.fair_queue_tags import FairQueueTags
from rlm.gateway.remote.fetch_quota import FetchQuota
from rsm.segment.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    client: Hashable
    tag: int
    expected_bytes: int


class ReadPermit:
    """One fetch's leave to read. `end` is to be called once."""

    def __init__(self, permits: ReadPermits, asked: _Asked) -> None:
        self._permits = permits
        self._asked = asked
        self._has_own_slot = True

    def take_slot(self) -> bool:
        """Take a place in the queue of reads; False if it is full, but never the first time.

        The place goes back with `ReadPermits.return_slot`.
        """
        if self._has_own_slot:
            self._has_own_slot = False
            return True
        return self._permits.take_slot()

    def end(self, given_bytes: int) -> None:
        """The client is given so much."""
        self._permits.ended(self._asked, given_bytes, gives_back=self._has_own_slot)
        self._has_own_slot = False


class ReadPermits:
    """Of one event loop: all methods are to be called there."""

    def __init__(self, *, quota: FetchQuota, slot_count: int, clock: Clock) -> None:
        """`slot_count` reads may be under way or wait for a thread."""
        self._quota = quota
        self.slot_count = slot_count
        self._clock = clock
        self._order = FairQueueTags()
        self._waiting: dict[asyncio.Future[ReadPermit], _Asked] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._reserved_bytes = 0
        self.taken_count = 0

    @property
    def waiting_count(self) -> int:
        """How many fetches wait for their turn."""
        return len(self._waiting)

    def throttle_ms(self) -> int:
        """How long the quota lets nothing more begin; 0 if it does."""
        return self._quota.throttle_ms(
            self._clock.monotonic_ms(), reserved_bytes=self._reserved_bytes
        )

    def permit_now(self, client: Hashable, *, expected_bytes: int) -> ReadPermit | None:
        """A turn, if none has to be waited for."""
        if self._waiting or not self._has_room():
            return None
        tag = self._order.tag(client)
        return self._begin(_Asked(client=client, tag=tag, expected_bytes=expected_bytes))

    async def permit(
        self, client: Hashable, *, expected_bytes: int, wait_ms: int
    ) -> ReadPermit | None:
        """A turn, or None if it did not come within `wait_ms`."""
        permit = self.permit_now(client, expected_bytes=expected_bytes)
        if permit is not None:
            return permit
        if wait_ms <= 0:
            return None
        asked = _Asked(client=client, tag=self._order.tag(client), expected_bytes=expected_bytes)
        coming: asyncio.Future[ReadPermit] = asyncio.get_running_loop().create_future()
        self._waiting[coming] = asked
        self._go_on()
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
        """Take a place of one more read, where one is left."""
        if self.taken_count >= self.slot_count:
            return False
        self.taken_count += 1
        return True

    def return_slot(self) -> None:
        """A read has ended."""
        self.taken_count -= 1
        self._go_on()

    def ended(self, asked: _Asked, given_bytes: int, *, gives_back: bool) -> None:
        """A turn has ended (`ReadPermit.end`)."""
        self._reserved_bytes -= asked.expected_bytes
        self._order.served(asked.client, given_bytes)
        self._quota.charge(given_bytes, self._clock.monotonic_ms())
        if gives_back:
            self.taken_count -= 1
        self._go_on()

    def forget(self, client: Hashable) -> None:
        """A client has gone. Idempotent."""
        self._order.forget(client)

    def _has_room(self) -> bool:
        return self.taken_count < self.slot_count and self.throttle_ms() == 0

    def _begin(self, asked: _Asked) -> ReadPermit:
        self._order.started(asked.tag)
        self._reserved_bytes += asked.expected_bytes
        self.taken_count += 1
        return ReadPermit(self, asked)

    def _go_on(self) -> None:
        """Begin the turns for which there is room; look again when the quota has some."""
        while self._waiting and self._has_room():
            # Those who asked first come first in the dict, so they win among equal tags.
            coming = min(self._waiting, key=lambda each: self._waiting[each].tag)
            coming.set_result(self._begin(self._waiting.pop(coming)))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and (throttle_ms := self.throttle_ms()):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(throttle_ms / 1000, self._go_on)
