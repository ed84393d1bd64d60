"""What one client will ask of stored data, made ready before it comes. Pure.

Most of what a reader of stored data waits for is the broker, which has to say each time that it has
not got the offset any more. While the reader takes an answer apart, nobody works. So once it was
given one that came from the store alone, what it would ask if it read on is planned at once; and
the broker is asked it, unless it has said lately what it would say
(rlm.gateway.session.out_of_range_cache). Its answer is then there when the reader's request comes
(rlm.gateway.session.speculation says when that counts).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlm.gateway.fetch.remote_outcome import RemoteOutcome
from rlm.gateway.model.actions import ToBroker
from rlm.gateway.session.in_flight import GatheredFetch, OwnQuestion, Pending
from rlm.gateway.session.out_of_range_cache import FIRST_VERSION
from rlm.gateway.session.own_requests import ask_log_ends
from rlm.gateway.session.session_state import SessionParts, SessionState
from rlm.gateway.session.speculation import (
    CORRELATION_ID,
    MAX_AGE_MS,
    SpeculativeFetch,
    speculative_request,
)
from rlm.wire.api.fetch import FETCH, FetchRequest
from rlm.wire.frames import RequestHeader, read_response, request_frame
from rsm.segment.errors import RetriableError

PAUSE_COUNT = 16
"""So many fetches are not asked for ahead after one that was in vain."""
_LEAST_SLACK_MS = MAX_AGE_MS // 5


class SpeculativeFetcher:
    """Of one session: its `state` is shared with the session's halves."""

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
        """Whether `speculate` has something to do."""
        return self._following is not None

    def is_frame_next(self, frame: memoryview) -> bool:
        """Whether what comes is what was expected; if not by its bytes it still may be."""
        asked = self._asked
        return asked is not None and asked.is_frame(frame) and self._is_valid(asked)

    def is_next(self, header: RequestHeader, version: int, request: FetchRequest) -> bool:
        """Whether what comes is what was expected."""
        asked = self._asked
        return (
            asked is not None
            and asked.is_request(header, version, request)
            and self._is_valid(asked)
        )

    def take(self) -> SpeculativeFetch:
        """What was expected: it comes."""
        asked, self._asked = self._asked, None
        assert asked is not None, "only what is expected can come"
        self._cycle_ms = self._parts.clock.monotonic_ms() - self._given_ms
        return asked

    def give_up(self) -> None:
        """Something else comes: what was asked, if anything, is moot."""
        self._following = None
        if self._asked is not None:
            self._asked = None
            self._pause_count = PAUSE_COUNT
            self._cycle_ms = MAX_AGE_MS

    def broker_answered(self, speculative: SpeculativeFetch, frame: memoryview) -> None:
        """Take the broker's answer to what the client has not asked yet."""
        header, response = read_response(FETCH, speculative.version, frame)
        exchange = speculative.exchange
        self._state.out_of_range_cache.record(
            exchange.plan, exchange.client_id, response, speculative.asked_ms
        )
        if speculative is not self._asked:
            return  # something else was asked meanwhile
        question = exchange.answered(response, self._parts.clock.monotonic_ms())
        if question is None and exchange.is_all_left and not response.node_endpoints:
            speculative.header_tags = header.unknown_tags
            speculative.is_answered = True
        else:
            self.give_up()

    def answer_given(self, fetch: GatheredFetch, outcomes: Sequence[RemoteOutcome]) -> None:
        """A Fetch is answered with these, which are valid only now."""
        self._following = None
        if self._pause_count:
            self._pause_count -= 1
        elif fetch.version >= FIRST_VERSION:
            request = fetch.exchange.following(outcomes)
            if request is not None:
                self._following = fetch, request
                self._given_ms = self._parts.clock.monotonic_ms()

    def speculate(self) -> None:
        """Go on, now that the client has something to do; where nothing else is under way.

        What is sent must not fall into a request of the client that passes in pieces.
        """
        following, self._following = self._following, None
        if following is None or not is_only_speculative(self._state.pending):
            return
        self._ask(*following)
        if self._asked is not None:
            expected = self._asked.exchange.foreseen_reads(self._parts.clock.monotonic_ms())
            if expected is not None:
                self._state.actions.append(expected)

    def _ask(self, before: GatheredFetch, request: FetchRequest) -> None:
        """What follows one; unless some of it is the broker's, or the logs' ends are not known."""
        state, parts = self._state, self._parts
        version, client_id = before.version, before.exchange.client_id
        try:
            plan = parts.plan(request, version)
        except RetriableError:  # as while the metadata is read again: nobody has asked yet
            return
        exchange = parts.exchange(plan, version, known_ends=state.known_ends, client_id=client_id)
        count = sum(len(topic.partitions) for topic in request.topics)
        if len(plan.remote) < count:
            return
        now_ms = parts.clock.monotonic_ms()
        # Those that would be too old when the client comes are asked for again.
        question = exchange.foreseen_question(now_ms + parts.limits.log_ends_age_ms // 2)
        if question is not None:
            if exchange.foreseen_question(now_ms) is not None:
                return
            if not any(isinstance(each, OwnQuestion) for each in state.pending):
                ask_log_ends(state, exchange, question, is_behind_fetch=False)
        speculative = self._asked = SpeculativeFetch(
            version=version,
            request=request,
            frame=_frame(request, version, client_id),
            exchange=exchange,
            asked_ms=now_ms,
            ends_ms=now_ms + MAX_AGE_MS,
        )
        # It has to count still when the client comes, even if that takes twice as long as before.
        slack_ms = max(2 * self._cycle_ms, _LEAST_SLACK_MS)
        cached = state.out_of_range_cache.lookup(plan, client_id, now_ms + slack_ms)
        if cached is not None and exchange.answered(cached.response, now_ms) is None:
            speculative.asked_ms, speculative.ends_ms = cached.asked_ms, cached.ends_ms
            speculative.is_answered = True
        else:
            state.pending.append(speculative)
            state.actions.append(ToBroker(_frame(speculative_request(plan), version, client_id)))

    def _is_valid(self, asked: SpeculativeFetch) -> bool:
        is_alone = is_only_speculative(self._state.pending)
        return is_alone and asked.is_young(self._parts.clock.monotonic_ms())


def is_only_speculative(owed: Iterable[Pending | SpeculativeFetch]) -> bool:
    """Whether the broker owes nothing but what we asked it ahead."""
    return all(isinstance(each, SpeculativeFetch | OwnQuestion) for each in owed)


def _frame(request: FetchRequest, version: int, client_id: str) -> bytes:
    return request_frame(
        FETCH, version, request, correlation_id=CORRELATION_ID, client_id=client_id
    )
