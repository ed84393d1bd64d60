"""Sends a sequential reader's next Fetch to the broker before the reader sends it. Pure.

A reader of the remote log waits mostly for the broker's OFFSET_OUT_OF_RANGE response to each Fetch.
While the reader processes a response, the broker and the gateway are idle. So after a response with
only stored records, the gateway plans the reader's next Fetch and sends it to the broker. If the
out-of-range cache (rlm.gateway.session.out_of_range_cache) has the broker's response, the gateway
uses that response instead. rlm.gateway.session.speculative_fetch defines when the reader's Fetch
may use the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlm.gateway.fetch.remote_result import RemoteOutcome
from rlm.gateway.model.actions import ToBroker
from rlm.gateway.session.in_flight import GatheredFetch, OwnLogEndsRequest, Pending
from rlm.gateway.session.out_of_range_cache import FIRST_VERSION
from rlm.gateway.session.own_requests import request_log_ends
from rlm.gateway.session.session_state import SessionParts, SessionState
from rlm.gateway.session.speculative_fetch import (
    CORRELATION_ID,
    MAX_AGE_MS,
    SpeculativeFetch,
    speculative_request,
)
from rlm.wire.api.fetch import FETCH, FetchRequest
from rlm.wire.frames import RequestHeader, read_response, request_frame
from rsm.segment.errors import RetriableError

PAUSE_COUNT = 16
"""How many of the client's fetches cause no speculative fetch after an unused one."""
_LEAST_SLACK_MS = MAX_AGE_MS // 5


class SpeculativeFetcher:
    """Represents one session's speculative fetches; shares `state` with the session's halves."""

    def __init__(self, parts: SessionParts, state: SessionState) -> None:
        self._parts = parts
        self._state = state
        self._asked: SpeculativeFetch | None = None
        self._pause_count = 0
        self._following: tuple[GatheredFetch, FetchRequest] | None = None
        self._given_ms = 0
        self._cycle_ms = MAX_AGE_MS

    @property
    def is_due(self) -> bool:
        """Return whether `speculate` has something to do."""
        return self._following is not None

    def is_frame_next(self, frame: memoryview) -> bool:
        """Return whether a request has the expected bytes; if not, `is_next` may still match it."""
        asked = self._asked
        return asked is not None and asked.is_frame(frame) and self._is_valid(asked)

    def is_next(self, header: RequestHeader, version: int, request: FetchRequest) -> bool:
        """Return whether a decoded request is the expected one."""
        asked = self._asked
        return (
            asked is not None
            and asked.is_request(header, version, request)
            and self._is_valid(asked)
        )

    def take(self) -> SpeculativeFetch:
        """Return the speculative fetch for the client's request, which has arrived."""
        asked, self._asked = self._asked, None
        assert asked is not None, "no speculative fetch matches the request"
        self._cycle_ms = self._parts.clock.monotonic_ms() - self._given_ms
        return asked

    def give_up(self) -> None:
        """Drop the speculative fetch, if any, because the client cannot use its response."""
        self._following = None
        if self._asked is not None:
            self._asked = None
            self._pause_count = PAUSE_COUNT
            self._cycle_ms = MAX_AGE_MS

    def process_response(self, speculative: SpeculativeFetch, frame: memoryview) -> None:
        """Process the broker's response to a fetch that the client has not sent yet."""
        header, response = read_response(FETCH, speculative.version, frame)
        exchange = speculative.exchange
        self._state.out_of_range_cache.record(
            exchange.plan, exchange.client_id, response, speculative.asked_ms
        )
        if speculative is not self._asked:
            return  # The fetch was dropped or replaced meanwhile.
        log_ends = exchange.record_response(response, self._parts.clock.monotonic_ms())
        if log_ends is None and exchange.is_all_left and not response.node_endpoints:
            speculative.header_tags = header.unknown_tags
            speculative.is_answered = True
        else:
            self.give_up()

    def plan_next(self, fetch: GatheredFetch, outcomes: Sequence[RemoteOutcome]) -> None:
        """Plan the Fetch after this one; `outcomes` are valid only during the call."""
        self._following = None
        if self._pause_count:
            self._pause_count -= 1
        elif fetch.version >= FIRST_VERSION:
            request = fetch.exchange.following(outcomes)
            if request is not None:
                self._following = fetch, request
                self._given_ms = self._parts.clock.monotonic_ms()

    def speculate(self) -> None:
        """Send the planned Fetch, if nothing else is in flight, and prefetch its records.

        Do not call this while a client's request passes in pieces: the sent bytes would split it.
        """
        following, self._following = self._following, None
        if following is None or not is_only_speculative(self._state.pending):
            return
        self._ask(*following)
        if self._asked is not None:
            expected = self._asked.exchange.foresee_reads(self._parts.clock.monotonic_ms())
            if expected is not None:
                self._state.actions.append(expected)

    def _ask(self, before: GatheredFetch, request: FetchRequest) -> None:
        """Start a speculative fetch, unless the broker may have records or log ends are unknown."""
        state, parts = self._state, self._parts
        version, client_id = before.version, before.exchange.client_id
        try:
            plan = parts.plan(request, version)
        except RetriableError:
            # For example, the metadata is not ready. No client waits for this fetch.
            return
        exchange = parts.exchange(plan, version, known_ends=state.known_ends, client_id=client_id)
        count = sum(len(topic.partitions) for topic in request.topics)
        if len(plan.remote) < count:
            return
        now_ms = parts.clock.monotonic_ms()
        # Request log ends again if they would be too old when the client's request arrives.
        log_ends = exchange.foreseen_log_ends(now_ms + parts.limits.log_ends_age_ms // 2)
        if log_ends is not None:
            if exchange.foreseen_log_ends(now_ms) is not None:
                return
            if not any(isinstance(each, OwnLogEndsRequest) for each in state.pending):
                request_log_ends(state, exchange, log_ends, is_after_fetch=False)
        speculative = self._asked = SpeculativeFetch(
            version=version,
            request=request,
            frame=_frame(request, version, client_id),
            exchange=exchange,
            asked_ms=now_ms,
            ends_ms=now_ms + MAX_AGE_MS,
        )
        # The response must still be valid if the client takes twice as long as last time.
        slack_ms = max(2 * self._cycle_ms, _LEAST_SLACK_MS)
        cached = state.out_of_range_cache.lookup(plan, client_id, now_ms + slack_ms)
        if cached is not None and exchange.record_response(cached.response, now_ms) is None:
            speculative.asked_ms, speculative.ends_ms = cached.asked_ms, cached.ends_ms
            speculative.is_answered = True
        else:
            state.pending.append(speculative)
            state.actions.append(ToBroker(_frame(speculative_request(plan), version, client_id)))

    def _is_valid(self, asked: SpeculativeFetch) -> bool:
        is_alone = is_only_speculative(self._state.pending)
        return is_alone and asked.is_young(self._parts.clock.monotonic_ms())


def is_only_speculative(owed: Iterable[Pending | SpeculativeFetch]) -> bool:
    """Return whether only speculative fetches and requests for log ends are in flight."""
    return all(isinstance(each, SpeculativeFetch | OwnLogEndsRequest) for each in owed)


def _frame(request: FetchRequest, version: int, client_id: str) -> bytes:
    return request_frame(
        FETCH, version, request, correlation_id=CORRELATION_ID, client_id=client_id
    )
