"""One client's reads of the store: in parallel, for no longer than the client waits.

What is not there in time goes on. The client is told that there is nothing yet, asks again, and
finds its read where it left it: so it keeps its turn, and nothing is read twice. A read that no
one comes back for is given up when its partition is read elsewhere, or the client goes.

A reader that reads on mostly finds what it asks for in memory: that is made ready on the loop while
the broker still says that it has it not, and is answered at once. All else may block, and is begun
in the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from rlm.gateway.fetch.remote_outcome import (
    Diverging,
    GapBelow,
    Reading,
    RemoteOutcome,
    Throttled,
)
from rlm.gateway.fetch.remote_slice import RemoteSlice
from rlm.gateway.model.actions import ExpectRead, ReadRemote, RemoteRead
from rlm.gateway.model.counters import GatewayCounts, RemoteCount
from rlm.gateway.remote.fair_queue import ReadTurn, ReadTurns
from rlm.gateway.remote.pending_fetch import AskedRead, UnderwayRead
from rlm.gateway.remote.remote_log_reader import TierReader
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition

_EXPECTED_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """What was made ready of a read that is likely to be wanted."""

    asked: ExpectRead
    slices: list[RemoteSlice]
    begun_s: float
    duration_s: float

    def release(self) -> None:
        for each in self.slices:
            each.release()


class RemoteReads:
    """Of one connection, on its loop. `pool` runs what may block."""

    def __init__(
        self,
        tier: TierReader,
        pool: Executor,
        turns: ReadTurns,
        counts: GatewayCounts,
        client: Hashable,
        *,
        expected_s: float = _EXPECTED_S,
    ) -> None:
        """`expected_s`: for how long what was made ready is kept for who does not come."""
        self._tier = tier
        self._pool = pool
        self._turns = turns
        self._counts = counts
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._underway: dict[TopicIdPartition, UnderwayRead] = {}
        self._expected: _Expected | None = None
        self._expected_s = expected_s
        self._expiry: asyncio.TimerHandle | None = None
        self._is_closed = False

    def expect(self, expected: ExpectRead) -> None:
        """Make ready what is in memory of a read that is likely to be wanted next; none if not all.

        It is kept for a moment only: of a client that stops reading no memory is held.
        """
        self._drop_expected()
        if expected.reads and not self._is_closed:
            self._expected = self._made_ready(expected)
        if self._expected is not None and self._expiry is None:
            self._expiry = self._loop.call_later(self._expected_s, self._expire)

    def at_once(self, wanted: ReadRemote) -> list[RemoteOutcome] | None:
        """What `read` would come to, if nothing has to be waited for; else None."""
        asked = ExpectRead(reads=wanted.reads, read_committed=wanted.read_committed)
        if self._expected is not None and self._expected.asked != asked:
            self._drop_expected()
        turn = self._turns.turn_now(self._client, expected_bytes=_expected_bytes(wanted))
        if turn is None:
            self._drop_expected()
            return None
        ready, self._expected = self._expected or self._made_ready(asked), None
        slices = ready.slices if ready is not None else []
        turn.end(sum(each.size_bytes for each in slices))
        if ready is None:
            return None
        for read in wanted.reads:
            self._counts.topic(read.topic_id_partition.topic).requests += 1
            self._counts.warm.add(ready.duration_s)
        return self._counted(wanted, slices)

    async def read(self, wanted: ReadRemote) -> list[RemoteOutcome]:
        """An outcome for each read, after `max_wait_ms` at the latest."""
        deadline_s = self._loop.time() + wanted.max_wait_ms / 1000
        turn = await self._turns.turn(
            self._client, expected_bytes=_expected_bytes(wanted), wait_ms=wanted.turn_wait_ms
        )
        if turn is None:
            self._counts.throttled(len(wanted.reads), self._turns.throttle_ms())
            return [Throttled()] * len(wanted.reads)
        outcomes: list[RemoteOutcome] = []
        try:
            wait_s = max(deadline_s - self._loop.time(), 0)
            outcomes = await self._read_in_turn(wanted, turn, wait_s)
        finally:
            turn.end(_given_bytes(outcomes))
        return self._counted(wanted, outcomes)

    def close(self) -> None:
        """The client has gone. What was begun of the store ends for the cache."""
        self._is_closed = True
        self._drop_expected()
        if self._expiry is not None:
            self._expiry.cancel()
        for underway in self._underway.values():
            underway.give_up()
        self._turns.forget(self._client)
        self._pool.submit(self._tier.forget, self._client)

    async def ended(self) -> None:
        """Wait for what `close` gave up."""
        await asyncio.gather(*[each.outcome for each in self._underway.values()])

    def _expire(self) -> None:
        """Drop what is too old, if anything; one timer serves all that is made ready meanwhile."""
        self._expiry = None
        if self._expected is None:
            return
        left_s = self._expected.begun_s + self._expected_s - self._loop.time()
        if left_s > 0:
            self._expiry = self._loop.call_later(left_s, self._expire)
        else:
            self._drop_expected()

    def _drop_expected(self) -> None:
        if self._expected is not None:
            self._expected.release()
            self._expected = None

    def _made_ready(self, asked: ExpectRead) -> _Expected | None:
        """All of what is asked, or nothing."""
        if any(each.topic_id_partition in self._underway for each in asked.reads):
            return None
        begun_s = self._loop.time()
        slices: list[RemoteSlice] = []
        for read in asked.reads:
            try:
                found = self._tier.ready(
                    read, read_committed=asked.read_committed, client=self._client
                )
            except TieredStorageError:
                found = None  # `read` meets the error too, and tells it
            if found is None:
                for each in slices:
                    each.release()
                return None
            slices.append(found)
        return _Expected(
            asked=asked, slices=slices, begun_s=begun_s, duration_s=self._loop.time() - begun_s
        )

    def _counted(
        self, wanted: ReadRemote, outcomes: Sequence[RemoteOutcome]
    ) -> list[RemoteOutcome]:
        for read, outcome in zip(wanted.reads, outcomes, strict=True):
            self._count(read, outcome)
        now_ms = round(self._loop.time() * 1000)
        self._counts.clients.add(wanted.client_id, _given_bytes(outcomes), now_ms)
        return list(outcomes)

    async def _read_in_turn(
        self, wanted: ReadRemote, turn: ReadTurn, wait_s: float
    ) -> list[RemoteOutcome]:
        underway = [
            self._begun(
                AskedRead(read=read, read_committed=wanted.read_committed, client=self._client),
                turn,
            )
            for read in wanted.reads
        ]
        coming = [each.outcome for each in underway if each is not None]
        if coming:
            await asyncio.wait(coming, timeout=wait_s)
        outcomes: list[RemoteOutcome] = []
        for each in underway:
            if each is None:
                outcomes.append(Throttled())
            elif each.outcome.done() and not each.is_given_up:
                self._underway.pop(each.asked.read.topic_id_partition, None)
                outcomes.append(each.outcome.result())
            else:
                outcomes.append(Reading())
        return outcomes

    def _begun(self, asked: AskedRead, turn: ReadTurn) -> UnderwayRead | None:
        """The read, begun now or before; None if there is no place for it in the queue."""
        partition = asked.read.topic_id_partition
        underway = self._underway.get(partition)
        if underway is not None and underway.asked == asked:
            return underway
        if underway is not None:
            underway.give_up()
            del self._underway[partition]
        if not turn.take_place():
            return None
        underway = self._underway[partition] = UnderwayRead(asked, self._tier, self._pool)
        underway.outcome.add_done_callback(partial(self._has_read, underway, self._loop.time()))
        self._counts.topic(partition.topic).requests += 1
        return underway

    def _has_read(
        self, underway: UnderwayRead, begun_s: float, outcome: asyncio.Future[RemoteOutcome]
    ) -> None:
        self._turns.give_back_place()
        if isinstance(outcome.result(), RemoteSlice):
            latencies = self._counts.cold if underway.was_cold else self._counts.warm
            latencies.add(self._loop.time() - begun_s)

    def _count(self, read: RemoteRead, outcome: RemoteOutcome) -> None:
        counts = self._counts
        if isinstance(outcome, RemoteSlice):
            counts.remote[RemoteCount.SERVED] += 1
            counts.remote_bytes += outcome.size_bytes
            counts.topic(read.topic_id_partition.topic).size_bytes += outcome.size_bytes
        elif isinstance(outcome, Reading):
            counts.remote[RemoteCount.READING] += 1
        elif isinstance(outcome, Throttled):
            counts.remote[RemoteCount.QUEUE_FULL] += 1
        elif isinstance(outcome, Diverging):
            counts.remote[RemoteCount.DIVERGING] += 1
        elif isinstance(outcome, GapBelow):
            counts.remote[RemoteCount.GAP] += 1
        elif outcome.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            counts.remote[RemoteCount.OUT_OF_RANGE] += 1
        else:
            counts.remote[RemoteCount.STORAGE_ERROR] += 1
            counts.topic(read.topic_id_partition.topic).errors += 1


def _expected_bytes(wanted: ReadRemote) -> int:
    return sum(each.max_bytes for each in wanted.reads)


def _given_bytes(outcomes: Sequence[RemoteOutcome]) -> int:
    return sum(each.size_bytes for each in outcomes if isinstance(each, RemoteSlice))
