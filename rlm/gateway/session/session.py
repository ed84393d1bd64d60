"""Runs the protocol of one client's connection and its upstream connection, without I/O. Pure.

A session takes the bytes of both sides and returns actions (rlm.gateway.model.actions), which its
owner carries out in order. Requests and responses keep their order and correlation ids. Opaque
frames pass in pieces as they arrive. The session's halves are ClientRequests and BrokerResponses;
between them is the queue of in-flight requests.

The session starts no further request of the client (`reads_client` is false) while any of these is
true:

 - It assembles the response to a Fetch that needs stored data. Responses to the gateway's own
   requests must come before responses to later client requests.
 - `pipelined_count` requests are in flight.
 - The client has not received its responses. Each further response would use memory.

It starts no further response of the broker while a response waits for the store or a rewrite. So
responses keep their order, and the session buffers at most one.

Meanwhile the session buffers the bytes that arrive. The owner pauses reading from a side only after
bytes were buffered (`holds_client`, `holds_broker`). Usually none arrive, and pausing costs more
than a read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rlm.gateway.fetch.remote_result import RemoteOutcome
from rlm.gateway.model.actions import Action, Close
from rlm.gateway.model.disconnect_cause import ConnectionRefusedByGatewayError, DisconnectCause
from rlm.gateway.session.frames import FrameStream
from rlm.gateway.session.requests import ClientRequests
from rlm.gateway.session.responses import BrokerResponses
from rlm.gateway.session.sasl_login import ClientLogin
from rlm.gateway.session.session_state import SessionParts, SessionState
from rlm.gateway.session.speculative_fetcher import SpeculativeFetcher, is_only_speculative
from rlm.wire.schema import Message
from rsm.segment.errors import CorruptError, RetriableError

TakenT = TypeVar("TakenT")


class Session:
    """Represents the session of one client; its owner must follow the module's docstring.

    Not thread-safe. Call no method after the action `Close`.
    """

    def __init__(self, parts: SessionParts) -> None:
        self._state = SessionState(parts.limits, ClientLogin(parts.logins))
        self._speculative_fetcher = SpeculativeFetcher(parts, self._state)
        self._responses = BrokerResponses(parts, self._state, self._speculative_fetcher)
        self._requests = ClientRequests(
            parts, self._state, self._speculative_fetcher, self._responses.read_store
        )
        self._limit_count = parts.limits.pipelined_count

    @property
    def reads_client(self) -> bool:
        """Return whether the session starts further requests of the client."""
        return not self._requests.stream.stopped

    @property
    def holds_client(self) -> bool:
        """Return whether the client's bytes are buffered until further requests may start."""
        return _holds(self._requests.stream)

    @property
    def is_blocked_by_client(self) -> bool:
        """Return whether requests wait until the client has received its responses.

        Call `process_buffered` when the client has received its responses.
        """
        return self._state.is_client_full and self._requests.stream.stopped

    @property
    def holds_broker(self) -> bool:
        """Return whether the broker's bytes are buffered until the waiting response is finished."""
        return _holds(self._responses.stream)

    @property
    def is_idle(self) -> bool:
        """Return whether no request is in flight."""
        return not self._state.pending

    @property
    def may_end(self) -> bool:
        """Return whether the client awaits no response, and has sent more than its first requests.

        Its first requests are ApiVersions and those of a SASL login.
        """
        responses, requests = self._responses.stream, self._requests.stream
        return (
            self._requests.has_started
            and not (
                responses.is_within_frame or requests.is_within_frame or self._state.is_working
            )
            and is_only_speculative(self._state.pending)
        )

    @property
    def is_misdirected(self) -> bool:
        """Return whether the client keeps sending requests that only another broker can serve."""
        return self._state.is_misdirected

    @property
    def request_count(self) -> int:
        """Return the number of requests that have arrived completely."""
        return self._requests.stream.ended_count

    @property
    def is_within_request(self) -> bool:
        """Return whether a request has arrived only in part, or waits in the buffer."""
        return self._requests.stream.is_within_frame

    def set_client_full(self, *, is_full: bool) -> None:
        """Set whether responses wait for the client; call it before each call with new input."""
        self._state.is_client_full = is_full
        if is_full:
            self._requests.stream.stopped = True

    def process_buffered(self) -> list[Action]:
        """Process buffered requests, after the client has received its responses."""
        return self._step(DisconnectCause.MALFORMED_REQUEST, lambda _: None, None)

    def receive_from_client(self, data: memoryview) -> list[Action]:
        """Process the client's bytes; reuse their buffer only after carrying out the actions."""
        return self._step(DisconnectCause.MALFORMED_REQUEST, self._requests.stream.feed, data)

    def receive_from_broker(self, data: memoryview) -> list[Action]:
        """Process the broker's bytes as `receive_from_client` does.

        Unlike `receive_from_client`, may change the bytes in place.
        """
        return self._step(DisconnectCause.MALFORMED_ANSWER, self._responses.stream.feed, data)

    @property
    def passing_bytes(self) -> int:
        """Return how many of the broker's next bytes may be spliced to the client."""
        return self._responses.stream.passing_bytes

    def skip_spliced(self, count: int) -> list[Action]:
        """Skip `count` of the broker's bytes, which were spliced."""
        return self._step(DisconnectCause.MALFORMED_ANSWER, self._responses.stream.skip, count)

    def finish_fetch(self, outcomes: Sequence[RemoteOutcome]) -> list[Action]:
        """Take one outcome per read of the action RemoteFetch, in order; the session owns them."""
        return self._step(
            DisconnectCause.MALFORMED_ANSWER, self._responses.finish_waiting_fetch, outcomes
        )

    def speculate(self) -> list[Action]:
        """Return the actions of a speculative fetch, if one is due.

        Call it after carrying out the actions of another method.
        """
        if not self._speculative_fetcher.is_due or self._requests.stream.is_within_frame:
            return []
        return self._step(
            DisconnectCause.MALFORMED_ANSWER, lambda _: self._speculative_fetcher.speculate(), None
        )

    def finish_exchange(self, response: Message) -> list[Action]:
        """Take the response that the rewrite of the action RewriteExchange returned."""
        return self._step(
            DisconnectCause.MALFORMED_ANSWER, self._responses.finish_waiting_exchange, response
        )

    def _step(
        self, malformed: DisconnectCause, take: Callable[[TakenT], None], taken: TakenT
    ) -> list[Action]:
        state = self._state
        try:
            take(taken)
            # Settling while no side is stopped would only cost time for every piece that passes.
            if self._requests.stream.stopped or self._responses.stream.stopped:
                self._settle()
        except ConnectionRefusedByGatewayError as error:
            state.actions.append(Close(reason=error.reason, detail=error.detail))
        except CorruptError as error:
            state.actions.append(Close(reason=malformed, detail=str(error)))
        except RetriableError as error:
            # For example, the metadata is not ready. Clients connect again.
            state.actions.append(
                Close(reason=DisconnectCause.METADATA_NOT_READY, detail=str(error))
            )
        return state.take_actions()

    def _settle(self) -> None:
        """Resume the sides that may continue after this call, and stop the others."""
        responses, requests = self._responses.stream, self._requests.stream
        responses.stopped = self._state.is_working
        responses.process_buffered()
        requests.stopped = self._must_hold_client()
        requests.process_buffered()
        requests.stopped = self._must_hold_client()

    def _must_hold_client(self) -> bool:
        state = self._state
        return state.is_gathering or state.is_client_full or len(state.pending) >= self._limit_count


def _holds(stream: FrameStream) -> bool:
    return stream.stopped and stream.buffered_bytes > 0
