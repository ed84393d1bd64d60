"""Carries out a session's actions on two transports, in the store, and on rewrite threads.

While the broker's transport is full, the relay pauses reading from the client. While the client's
transport is full, it pauses reading from both, because the gateway itself answers some requests.
While a response waits for the client's socket, the relay pauses reading only after further bytes
have arrived. Usually no bytes arrive, and a pause costs more than a read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial

from rlm.gateway.fetch.remote_result import RemoteOutcome, release_all
from rlm.gateway.model.actions import (
    Action,
    Close,
    PrefetchHint,
    RemoteFetch,
    ResponseToClient,
    RewriteExchange,
    ToBroker,
    ToClient,
)
from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.relay.client_writer import ClientOutput, write_received
from rlm.gateway.relay.connection_watch import Arrival
from rlm.gateway.relay.pipes import Pipes
from rlm.gateway.relay.rewrite_pools import RewritePools
from rlm.gateway.relay.splice import Splice, plain_socket
from rlm.gateway.remote.remote_fetches import RemoteFetches
from rlm.gateway.remote.response_rounds import ResponseRounds
from rlm.gateway.session.session import Session
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

CLOSE_STRAY_WITHIN_S = 30.0
"""The time for which a stray connection may wait for its last response."""

_FLUSH_S = 5.0
_SPLICED_BYTES = 128 * 1024  # Below this size, the setup of a splice costs as much as it saves.


class Relay:
    """Represents the downstream and the upstream connection of one client. Use on one loop.

    Calls `closed` exactly once, with the disconnect cause and details.
    """

    def __init__(
        self,
        session: Session,
        *,
        reads: RemoteFetches,
        rounds: ResponseRounds,
        pools: RewritePools,
        context: Callable[[], GatewayContext],
        client: asyncio.Transport,
        pipes: Pipes,
        closed: Callable[[DisconnectCause, str], None],
    ) -> None:
        self._session = session
        self._reads = reads
        self._rounds = rounds
        self._pools = pools
        self._context = context
        self._client = client
        self._output = ClientOutput(
            client,
            client=plain_socket(client),
            moved=lambda: self.set_client_full(is_full=False),
            failed=lambda: self._end_side(DisconnectCause.CLIENT_LEFT),
        )
        self._broker: asyncio.Transport | None = None
        self._broker_is_full = False
        self._reads_client, self._reads_broker = False, True
        self._early = bytearray()
        self._came_late = False
        self._pipes = pipes
        self._splice: Splice | None = None
        self._closed = closed
        self._is_closed = False
        self._leaving_for: DisconnectCause | None = None
        self._leave_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._active_s = self._loop.time()
        client.pause_reading()

    @property
    def arrival(self) -> Arrival:
        """Return the progress of the connection, for ConnectionWatch."""
        return Arrival(
            request_count=self._session.request_count,
            is_partial=self._session.is_within_request,
            is_read=self._client.is_reading() and self._session.reads_client,
            sent_count=self._output.sent_count,
            taken_count=self._output.taken_count,
            active_s=max(self._active_s, self._splice.active_s if self._splice else 0.0),
        )

    def start(self, broker: asyncio.Transport) -> None:
        """Start to relay; if the relay is already closed, abort `broker`."""
        if self._is_closed:
            broker.abort()
            return
        self._broker = broker
        self._splice = self._splice_to_client(broker)
        self._pace()
        if self._early:
            self._run(lambda: self._session.receive_from_client(memoryview(self._early)))

    def receive_from_client(self, data: memoryview) -> None:
        """Process bytes from the client. The caller may reuse the buffer afterwards."""
        if self._broker is None:
            self._receive_early(data)
            return
        self._came_late = self._output.is_blocked
        self._run(lambda: self._session.receive_from_client(data))

    def _receive_early(self, data: memoryview) -> None:
        """Keep bytes that arrive before the broker is connected, and pause the client again.

        Python 3.11.2 (Debian 12) starts to read after `connection_made`, although that method
        paused the transport. A further pause has no effect until the transport is resumed.
        """
        self._early += data
        _set_reading(self._client, reads=True)
        _set_reading(self._client, reads=False)

    def receive_from_broker(self, data: memoryview) -> None:
        """Process bytes from the broker, and possibly change them in place.

        The caller may reuse the buffer afterwards.
        """
        self._came_late = self._output.is_blocked
        self._run(lambda: self._session.receive_from_broker(data))
        if self._splice is not None and not self._is_closed:
            self._pass_on_unread(self._splice)

    def set_client_full(self, *, is_full: bool) -> None:
        """Record whether the client's transport is full."""
        if is_full:
            self._output.pause()
        else:
            self._active_s = self._loop.time()
            self._output.resume()
        if self._is_closed:
            if not self._output.is_blocked:
                self._client.close()
            return
        self._continue_if_taken()
        self._pace()
        self._end_if_leaving()

    def set_broker_full(self, *, is_full: bool) -> None:
        """Record whether the broker's transport is full."""
        self._broker_is_full = is_full
        self._pace()

    def leave(self, reason: DisconnectCause, *, within_s: float) -> None:
        """Close both connections once the client awaits no response, or after `within_s` seconds.

        Some clients, such as franz-go, treat a close before the first response as a refusal, and
        fail instead of retrying. Idempotent.
        """
        if self._leaving_for is None and not self._is_closed:
            self._leaving_for = reason
            self._leave_timer = self._loop.call_later(within_s, self.close, reason)
            self._end_if_leaving()

    def close(self, reason: DisconnectCause, detail: str = "") -> None:
        """Close both connections. Idempotent.

        Waiting responses are still sent for up to 5 s, but discarded at once if the client has
        left.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._closed(reason, detail)
        self._reads.close()
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._splice is not None:
            self._splice.close()
        if self._broker is not None:
            self._broker.close()
        if reason is DisconnectCause.CLIENT_LEFT:
            self._output.drop()
            return
        self._client.pause_reading()
        if not self._output.is_blocked:
            self._client.close()
        self._loop.call_later(_FLUSH_S, self._abort)

    async def wait_closed(self) -> None:
        """Wait, after `close`, until all work of the connection has ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._reads.wait_closed()

    def _abort(self) -> None:
        self._output.drop()
        self._client.abort()

    def _pass_on_unread(self, splice: Splice) -> None:
        """Splice a large opaque part of a response if all data before that part is sent."""
        passing_bytes = self._session.passing_bytes
        is_free = not self._output.is_blocked and not self._client.get_write_buffer_size()
        if passing_bytes >= _SPLICED_BYTES and is_free:
            splice.begin(passing_bytes)
            self._pace()

    def _splice_to_client(self, broker: asyncio.Transport) -> Splice | None:
        """Return a splice from broker to client; None if the kernel cannot splice their sockets."""
        sockets = plain_socket(broker), plain_socket(self._client)
        if sockets[0] is None or sockets[1] is None:
            return None
        return Splice(
            sockets[0],
            sockets[1],
            pipes=self._pipes,
            done=lambda count: self._run(lambda: self._session.skip_spliced(count)),
            failed=self._end_side,
        )

    def _end_side(self, reason: DisconnectCause) -> None:
        self.close(reason)
        if reason is DisconnectCause.CLIENT_LEFT:  # The transport may not have noticed yet.
            self._client.abort()

    def _run(self, step: Callable[[], list[Action]]) -> None:
        """Call the session through `step`, and carry out its actions."""
        if self._is_closed:
            return
        self._active_s = self._loop.time()
        try:
            self._session.set_client_full(is_full=self._output.is_blocked)
            self._carry_out_all(step())
            if not self._is_closed:
                self._carry_out_all(self._session.speculate())
        except Exception:  # noqa: BLE001 - other connections continue
            _log.exception("cannot serve a client's connection")
            self.close(DisconnectCause.INTERNAL_ERROR)
            return
        if self._session.is_misdirected:
            self.leave(DisconnectCause.LED_ELSEWHERE, within_s=CLOSE_STRAY_WITHIN_S)
        self._continue_if_taken()
        self._pace()
        self._end_if_leaving()

    def _end_if_leaving(self) -> None:
        if self._leaving_for is None or self._output.is_blocked:
            return
        if self._session.may_end:
            self.close(self._leaving_for)

    def _continue_if_taken(self) -> None:
        """Schedule the session's buffered requests if no response waits for the client."""
        if self._session.is_blocked_by_client and not (self._output.is_blocked or self._is_closed):
            self._loop.call_soon(self._run, self._session.process_buffered)

    def _carry_out_all(self, actions: list[Action]) -> None:
        """Carry out actions, and the actions that follow from reads of cached data."""
        ready = self._carry_out_some(actions)
        while ready is not None:
            self._session.set_client_full(is_full=self._output.is_blocked)
            ready = self._carry_out_some(self._session.finish_fetch(ready))

    def _carry_out_some(self, actions: list[Action]) -> list[RemoteOutcome] | None:
        """Carry out actions. If one of them reads cached data, return the outcomes."""
        ready: list[RemoteOutcome] | None = None
        for action in actions:
            if not isinstance(action, RemoteFetch):
                self._carry_out(action)
            elif self._rounds.may_give(self):
                ready = self._read_at_once(action)
            else:
                self._rounds.wait(partial(self._read_with_permit, action))
        if ready is not None and self._is_closed:
            release_all(ready)
            return None
        return ready

    def _carry_out(self, action: Action) -> None:
        match action:
            case ToClient(data):
                self._output.write(data)
            case ToBroker(data):
                if self._broker is not None:
                    write_received(self._broker, data)
            case ResponseToClient():
                self._output.respond(action)
            case PrefetchHint():
                self._reads.expect(action)
            case RewriteExchange():
                self._begin(self._rewrite(action))
            case Close():
                self.close(action.reason, action.detail)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _read_at_once(self, wanted: RemoteFetch) -> list[RemoteOutcome] | None:
        """Return the outcomes if their data is cached; else start the read and return None."""
        ready = self._reads.read_now(wanted)
        if ready is None:
            self._begin(self._read_remote(wanted))
        return ready

    def _read_with_permit(self, wanted: RemoteFetch) -> None:
        def step() -> list[Action]:
            ready = self._read_at_once(wanted)
            return [] if ready is None else self._session.finish_fetch(ready)

        self._run(step)

    async def _read_remote(self, wanted: RemoteFetch) -> None:
        outcomes = await self._reads.read(wanted)
        if self._rounds.may_give(self):
            self._take(outcomes)
        else:
            self._rounds.wait(partial(self._take, outcomes))

    def _take(self, outcomes: list[RemoteOutcome]) -> None:
        if self._is_closed:
            release_all(outcomes)
        else:
            self._run(lambda: self._session.finish_fetch(outcomes))

    async def _rewrite(self, wanted: RewriteExchange) -> None:
        try:
            response = await self._loop.run_in_executor(
                self._pools.of(wanted), wanted.rewrite.response, wanted.exchange, wanted.context
            )
        except Exception:  # noqa: BLE001 - other connections continue
            _log.exception(LogLine("cannot rewrite a response", api=wanted.rewrite.api.name))
            self.close(DisconnectCause.INTERNAL_ERROR)
            return
        self._run(lambda: self._session.finish_exchange(response))

    def _pace(self) -> None:
        """Read from each side only while its bytes can be relayed or answered."""
        if self._broker is None or self._is_closed:
            return
        session, output = self._session, self._output
        is_blocked = output.is_blocked and (self._came_late or output.is_paused)
        reads_client = not (is_blocked or self._broker_is_full or session.holds_client)
        if reads_client != self._reads_client:
            self._reads_client = reads_client
            _set_reading(self._client, reads=reads_client)
        is_spliced = self._splice is not None and self._splice.is_running
        reads_broker = not (is_blocked or is_spliced or session.holds_broker)
        if reads_broker != self._reads_broker:
            self._reads_broker = reads_broker
            _set_reading(self._broker, reads=reads_broker)


def _set_reading(transport: asyncio.Transport, *, reads: bool) -> None:
    if transport.is_closing():
        return
    if reads:
        transport.resume_reading()
    else:
        transport.pause_reading()
