"""One client's connection and its connection to the broker, without their I/O.

Bytes of either side in, actions out (rlm.gateway.model.actions), to be carried out in order.
Requests leave in the order in which they came, with their correlation ids, and so do the answers;
what need not be looked into passes in the pieces in which it comes. The two halves are
ClientRequests and BrokerAnswers; what the broker owes stands between them.

Of the client no further request is begun (`reads_client`) while

 - a Fetch is under way of which the broker lacks a part: our own questions, behind it, are then
   answered before anything else the client asked,
 - the broker owes `pipelined_count` answers,
 - the client has not taken what it was sent: each answer more would hold memory.

Of the broker no further answer is begun while one waits for the store or a rewrite: so no answer
overtakes another, and no more than one is held.

What comes all the same is held. The owner pauses its reading of a side once something is
(`holds_client`, `holds_broker`): mostly nothing comes, and to pause costs more than to look. Pure;
not thread-safe. After an action `Close` no method may be called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rlm.gateway.fetch.remote_outcome import RemoteOutcome
from rlm.gateway.model.actions import Action, Close
from rlm.gateway.model.disconnect_cause import ConnectionRefusedByGatewayError, DisconnectCause
from rlm.gateway.session.frames import FrameStream
from rlm.gateway.session.requests import ClientRequests
from rlm.gateway.session.responses import BrokerAnswers
from rlm.gateway.session.sasl_login import ClientLogin
from rlm.gateway.session.session_state import SessionParts, SessionState
from rlm.gateway.session.speculative_fetch import SpeculativeFetcher, is_only_speculative
from rlm.wire.schema import Message
from rsm.segment.errors import CorruptError, RetriableError

TakenT = TypeVar("TakenT")


class Session:
    """The rules of one connection; states its owner's duties in the module's docstring."""

    def __init__(self, parts: SessionParts) -> None:
        self._state = SessionState(parts.limits, ClientLogin(parts.logins))
        self._speculative_fetcher = SpeculativeFetcher(parts, self._state)
        self._answers = BrokerAnswers(parts, self._state, self._speculative_fetcher)
        self._requests = ClientRequests(
            parts, self._state, self._speculative_fetcher, self._answers.answered_speculatively
        )
        self._limit_count = parts.limits.pipelined_count

    @property
    def reads_client(self) -> bool:
        """Whether more of the client's bytes are wanted."""
        return not self._requests.stream.stopped

    @property
    def holds_client(self) -> bool:
        """Whether the client sent more than is wanted now."""
        return _holds(self._requests.stream)

    @property
    def is_blocked_by_client(self) -> bool:
        """Whether the client's requests wait for it to take what it was sent: then `go_on`."""
        return self._state.is_client_full and self._requests.stream.stopped

    @property
    def holds_broker(self) -> bool:
        """Whether the broker sent more than is wanted now."""
        return _holds(self._answers.stream)

    @property
    def is_idle(self) -> bool:
        """Whether the broker owes nothing."""
        return not self._state.pending

    @property
    def may_end(self) -> bool:
        """Whether the client awaits no answer, and has asked more than how to begin."""
        answers, requests = self._answers.stream, self._requests.stream
        return (
            self._requests.has_started
            and not (answers.is_within_frame or requests.is_within_frame or self._state.is_working)
            and is_only_speculative(self._state.pending)
        )

    @property
    def request_count(self) -> int:
        """How many requests have come whole."""
        return self._requests.stream.ended_count

    @property
    def is_within_request(self) -> bool:
        """Whether a part of a request came whose rest has not."""
        return self._requests.stream.is_within_frame

    def client_is_full(self, *, is_full: bool) -> None:
        """Take note whether the client has yet to take what it was sent, before any other call."""
        self._state.is_client_full = is_full
        if is_full:
            self._requests.stream.stopped = True

    def go_on(self) -> list[Action]:
        """Take up what is held of the client, now that it has taken what it was sent."""
        return self._step(DisconnectCause.MALFORMED_REQUEST, lambda _: None, None)

    def from_client(self, data: memoryview) -> list[Action]:
        """Take what the client sent; the buffer may be reused when the actions were carried out."""
        return self._step(DisconnectCause.MALFORMED_REQUEST, self._requests.stream.feed, data)

    def from_broker(self, data: memoryview) -> list[Action]:
        """Take what the broker sent, which may be changed in place; else as `from_client`."""
        return self._step(DisconnectCause.MALFORMED_ANSWER, self._answers.stream.feed, data)

    @property
    def passing_bytes(self) -> int:
        """How many of the broker's next bytes go to the client unseen and unchanged."""
        return self._answers.stream.passing_bytes

    def passed_on(self, count: int) -> list[Action]:
        """Take note that so many of these went there by another way."""
        return self._step(DisconnectCause.MALFORMED_ANSWER, self._answers.stream.passed, count)

    def remote_read(self, outcomes: Sequence[RemoteOutcome]) -> list[Action]:
        """Take an outcome for each read of the action RemoteFetch, in order; they are ours now."""
        return self._step(DisconnectCause.MALFORMED_ANSWER, self._answers.remote_read, outcomes)

    def speculate(self) -> list[Action]:
        """What can be done for a client that has just been given something, before it asks again.

        To be called once the actions of the other methods were carried out.
        """
        if not self._speculative_fetcher.is_due or self._requests.stream.is_within_frame:
            return []
        return self._step(
            DisconnectCause.MALFORMED_ANSWER, lambda _: self._speculative_fetcher.speculate(), None
        )

    def exchange_rewritten(self, response: Message) -> list[Action]:
        """Take what the rewrite of the action RewriteExchange made."""
        return self._step(
            DisconnectCause.MALFORMED_ANSWER, self._answers.exchange_rewritten, response
        )

    def _step(
        self, malformed: DisconnectCause, take: Callable[[TakenT], None], taken: TakenT
    ) -> list[Action]:
        state = self._state
        try:
            take(taken)
            # Else nothing is held that could go on: this is run for every piece that passes.
            if self._requests.stream.stopped or self._answers.stream.stopped:
                self._settle()
        except ConnectionRefusedByGatewayError as error:
            state.actions.append(Close(reason=error.reason, detail=error.detail))
        except CorruptError as error:
            state.actions.append(Close(reason=malformed, detail=str(error)))
        except RetriableError as error:  # as while the metadata is read again: clients come again
            state.actions.append(
                Close(reason=DisconnectCause.METADATA_NOT_READY, detail=str(error))
            )
        return state.take_actions()

    def _settle(self) -> None:
        """Go on where this call has lifted what stopped a side; then say what is stopped now."""
        answers, requests = self._answers.stream, self._requests.stream
        answers.stopped = self._state.is_working
        answers.go_on()
        requests.stopped = self._must_hold_client()
        requests.go_on()
        requests.stopped = self._must_hold_client()

    def _must_hold_client(self) -> bool:
        state = self._state
        return state.is_gathering or state.is_client_full or len(state.pending) >= self._limit_count


def _holds(stream: FrameStream) -> bool:
    return stream.stopped and stream.buffered_bytes > 0
