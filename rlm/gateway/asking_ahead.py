"""What one client will ask of stored data, asked of the broker before it comes. Pure.

Most of what a reader of stored data waits for is the broker, which has to say each time that it has
not got the offset any more. While the reader takes an answer apart, nobody works. So once it was
given one that came from the store alone, the broker is asked at once what the reader would ask if
it read on; and what follows that too, as soon as it is known where that begins. The broker's
answers are then there when the reader's requests come (rlm.gateway.fetch_ahead says when they
count).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rlm.gateway.actions import ToBroker
from rlm.gateway.fetch_ahead import (
    CORRELATION_ID,
    FIRST_VERSION,
    MAX_AGE_MS,
    FetchAhead,
    sent_ahead,
)
from rlm.gateway.own_questions import ask_log_ends
from rlm.gateway.pending_answers import GatheredFetch, OwnQuestion, Pending
from rlm.gateway.remote_outcome import RemoteOutcome
from rlm.gateway.session_parts import SessionParts, SessionState
from rlm.wire.api.fetch import FETCH, FetchRequest, FetchResponse
from rlm.wire.frames import RequestHeader, read_response, request_frames
from rlm.wire.schema import UnknownTags
from rsm.segment.errors import RetriableError

PAUSE_COUNT = 16
"""So many fetches are not asked for ahead after one that was in vain."""
QUICK_MS = MAX_AGE_MS // 3
"""Of readers that take no longer for an answer the second next fetch is asked for too: else its
answer would come later than itself. To slower ones it would be too old."""
_REMEMBERED_BYTES = 4096


class _Answer(NamedTuple):
    """One of the broker's, as it came and as it was read."""

    version: int
    frame: bytes
    tags: UnknownTags
    response: FetchResponse


class AskingAhead:
    """Of one session: its `state` is shared with the session's halves."""

    def __init__(self, parts: SessionParts, state: SessionState) -> None:
        self._parts = parts
        self._state = state
        self._asked: deque[FetchAhead] = deque()
        self._pause_count = 0
        self._following: tuple[GatheredFetch, FetchRequest] | None = None
        self._is_due = False
        self._given_ms = 0
        self._is_quick = False
        self._last_answer: _Answer | None = None

    @property
    def is_due(self) -> bool:
        """Whether `look_ahead` has something to do."""
        return self._is_due

    def is_frame_next(self, frame: memoryview) -> bool:
        """Whether what comes is what was asked first; if not by its bytes it still may be."""
        return bool(self._asked) and self._asked[0].is_frame(frame) and self._is_first_valid()

    def is_next(self, header: RequestHeader, version: int, request: FetchRequest) -> bool:
        """Whether what comes is what was asked first."""
        return (
            bool(self._asked)
            and self._asked[0].is_request(header, version, request)
            and self._is_first_valid()
        )

    def take(self) -> FetchAhead:
        """What was asked first: it comes."""
        self._is_quick = self._parts.clock.monotonic_ms() - self._given_ms <= QUICK_MS
        return self._asked.popleft()

    def give_up(self) -> None:
        """Something else comes: what was asked, if anything, is moot."""
        self._following, self._is_due = None, False
        if self._asked:
            self._asked.clear()
            self._pause_count = PAUSE_COUNT
            self._is_quick = False

    def broker_answered(self, ahead: FetchAhead, frame: memoryview) -> None:
        """Take the broker's answer to what the client has not asked yet."""
        if not any(each is ahead for each in self._asked):
            return  # something else was asked meanwhile
        tags, response = self._read_answer(ahead.version, frame)
        question = ahead.exchange.answered(response, self._parts.clock.monotonic_ms())
        if question is None and ahead.exchange.is_all_left and not response.node_endpoints:
            ahead.header_tags = tags
            ahead.is_answered = True
        else:
            self.give_up()

    def answer_given(self, fetch: GatheredFetch, outcomes: Sequence[RemoteOutcome]) -> None:
        """A Fetch is answered with these, which are valid only now."""
        self._following = None
        if self._pause_count:
            self._pause_count -= 1
            return
        if fetch.version < FIRST_VERSION:
            return
        if not self._asked:
            request = fetch.exchange.following(outcomes)
            if request is None:
                return
            self._following = fetch, request
        self._given_ms = self._parts.clock.monotonic_ms()
        self._is_due = True

    def look_ahead(self) -> None:
        """Go on, now that the client has something to do; where nothing else is under way.

        What is sent must not fall into a request of the client that passes in pieces.
        """
        self._is_due = False
        following, self._following = self._following, None
        if not is_asked_ahead_only(self._state.pending):
            return
        if following is not None:
            self._ask(*following)
        if self._asked:
            expected = self._asked[0].exchange.foreseen_reads(self._parts.clock.monotonic_ms())
            if expected is not None:
                self._state.actions.append(expected)

    def made_ready(self, outcomes: Sequence[RemoteOutcome]) -> None:
        """What the client will ask next would be given these, which are valid only now.

        To be called while what `look_ahead` wanted is carried out.
        """
        if len(self._asked) != 1 or not self._is_quick:
            return
        (ahead,) = self._asked
        request = ahead.exchange.following(outcomes)
        if request is not None:
            self._ask(ahead, request)

    def _ask(self, before: GatheredFetch | FetchAhead, request: FetchRequest) -> None:
        """What follows one; unless some of it is the broker's, or the logs' ends are not known."""
        state, parts = self._state, self._parts
        version, client_id = before.version, before.exchange.client_id
        try:
            plan = parts.plan(request, version)
        except RetriableError:  # as while the metadata is read anew: nobody has asked yet
            return
        exchange = parts.exchange(plan, version, known_ends=state.known_ends, client_id=client_id)
        count = sum(len(topic.partitions) for topic in request.topics)
        if len(plan.remote) < count:
            return
        now_ms = parts.clock.monotonic_ms()
        if exchange.foreseen_question(now_ms) is not None:
            return
        # Those that would be too old when the client comes are asked for anew.
        question = exchange.foreseen_question(now_ms + parts.limits.log_ends_age_ms // 2)
        is_asked = any(isinstance(each, OwnQuestion) for each in state.pending)
        if question is not None and not is_asked:
            ask_log_ends(state, exchange, question, is_behind_fetch=False)
        expected, sent = request_frames(
            FETCH,
            version,
            (request, sent_ahead(plan)),
            correlation_id=CORRELATION_ID,
            client_id=client_id,
        )
        ahead = FetchAhead(
            version=version,
            request=request,
            frame=expected,
            exchange=exchange,
            asked_ms=now_ms,
        )
        self._asked.append(ahead)
        state.pending.append(ahead)
        state.actions.append(ToBroker(sent))

    def _is_first_valid(self) -> bool:
        is_alone = is_asked_ahead_only(self._state.pending)
        return is_alone and self._asked[0].is_young(self._parts.clock.monotonic_ms())

    def _read_answer(self, version: int, frame: memoryview) -> tuple[UnknownTags, FetchResponse]:
        """Mostly it is the same as the one before, to the byte."""
        last = self._last_answer
        if last is not None and last.version == version and last.frame == frame:
            return last.tags, last.response
        kept = bytes(frame)
        header, response = read_response(FETCH, version, kept)
        if len(kept) <= _REMEMBERED_BYTES:
            self._last_answer = _Answer(version, kept, header.unknown_tags, response)
        return header.unknown_tags, response


def is_asked_ahead_only(owed: Iterable[Pending | FetchAhead]) -> bool:
    """Whether the broker owes nothing but what we asked it ahead."""
    return all(isinstance(each, FetchAhead | OwnQuestion) for each in owed)
