"""Processes responses from the broker to the client: one half of a session. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rlm.gateway.fetch.log_ends import LIST_OFFSETS_VERSION, LogEndKind
from rlm.gateway.fetch.remote_result import RemoteOutcome, release_all
from rlm.gateway.model.actions import PrefetchHint, RewriteExchange, ToClient
from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.rewriting.addresses import remove_leader_endpoints
from rlm.gateway.session.frame_sinks import (
    ForwardingSink,
    GatheringSink,
    ResizingSink,
    ScanningSink,
)
from rlm.gateway.session.frames import FrameSink, FrameStream
from rlm.gateway.session.in_flight import (
    GatheredFetch,
    LoginStep,
    OwnLogEndsRequest,
    OwnResponse,
    OwnTopicIdsRequest,
    Pending,
    PendingRelay,
    RewrittenExchange,
    RewrittenResponse,
    StreamedFetch,
    StreamedResponse,
)
from rlm.gateway.session.misdirected_requests import MisdirectedRequests, first_error_code
from rlm.gateway.session.out_of_range_cache import FIRST_VERSION
from rlm.gateway.session.own_requests import (
    METADATA_VERSION,
    leader_epochs,
    request_log_ends,
    topic_ids,
)
from rlm.gateway.session.session_state import SessionParts, SessionState
from rlm.gateway.session.speculative_fetch import SpeculativeFetch
from rlm.gateway.session.speculative_fetcher import SpeculativeFetcher, is_only_speculative
from rlm.wire.api.api_versions import API_VERSIONS
from rlm.wire.api.fetch import FETCH
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frame_heads import read_correlation_id
from rlm.wire.frames import SIZE_BYTES, read_response, response_parts
from rlm.wire.scanning.fetch_scanner import FetchResponseScanner
from rlm.wire.schema import Buffer, Message
from rsm.segment.errors import CorruptError

_MAX_FRAME_BYTES = 0x7FFF_FFFF
_AFTER_CORRELATION_ID = 4


class BrokerResponses:
    """Represents the responses of one broker connection.

    `stream` takes the broker's bytes; its errors close the connection. At most one response at a
    time waits for the store or for a rewrite.
    """

    def __init__(
        self, parts: SessionParts, state: SessionState, speculative: SpeculativeFetcher
    ) -> None:
        self._parts = parts
        self._state = state
        self._speculative_fetcher = speculative
        self._misdirected = MisdirectedRequests()
        self._waiting: GatheredFetch | RewrittenExchange | None = None
        # The broker has answered this exchange, but not yet the request for its topics' ids.
        self._unconfirmed: tuple[RewrittenExchange, Exchange[Message, Message]] | None = None
        self.stream = FrameStream(self._begin, max_frame_bytes=_MAX_FRAME_BYTES)

    def finish_waiting_fetch(self, outcomes: Sequence[RemoteOutcome]) -> None:
        """Finish the waiting Fetch with the outcomes of its remote fetch."""
        waiting = self._take_waiting()
        assert isinstance(waiting, GatheredFetch)
        self._finish_fetch(waiting, outcomes)

    def read_store(self, fetch: GatheredFetch) -> None:
        """Read the store for an answered Fetch, which must be the client's only pending request."""
        self._read_remote(fetch)

    def finish_waiting_exchange(self, response: Message) -> None:
        """Finish the waiting exchange with the rewritten response."""
        waiting = self._take_waiting()
        assert isinstance(waiting, RewrittenExchange)
        parts = response_parts(
            waiting.rewrite.api,
            waiting.version,
            response,
            correlation_id=waiting.correlation_id,
            header_tags=waiting.header_tags,
        )
        self._give(parts)

    def _take_waiting(self) -> GatheredFetch | RewrittenExchange | None:
        waiting, self._waiting = self._waiting, None
        self._state.is_working = False
        return waiting

    def _wait(self, waiting: GatheredFetch | RewrittenExchange) -> None:
        self._waiting = waiting
        self._state.is_working = True
        self.stream.stopped = True

    def _begin(self, data: memoryview, frame_bytes: int) -> FrameSink | None:
        correlation_id = read_correlation_id(data)
        if correlation_id is None:
            if frame_bytes < _AFTER_CORRELATION_ID:
                raise CorruptError(
                    "the response is invalid: it is shorter than a correlation id",
                    frame_bytes=frame_bytes,
                    least_bytes=_AFTER_CORRELATION_ID,
                )
            return None
        if not self._state.pending:
            raise CorruptError("the response is invalid: no request is pending")
        pending = self._state.pending[0]
        assert not isinstance(pending, OwnResponse)
        if pending.correlation_id != correlation_id:
            expected, found = pending.correlation_id, correlation_id
            raise CorruptError(
                "the response is invalid: it has another correlation id than the oldest request",
                expected=expected,
                found=found,
            )
        error_code = _first_error_code(pending, data, frame_bytes)
        if error_code is None:
            return None
        self._note(error_code)
        if isinstance(pending, StreamedFetch):
            scanner = FetchResponseScanner(
                pending.version, frame_bytes=frame_bytes, visitor=pending.patches
            )
            return ScanningSink(
                lambda: self._state.actions, scanner, lambda: self._end_streamed(pending)
            )
        if isinstance(pending, StreamedResponse):
            resizing = pending.rewrite.scanner(pending.version, frame_bytes, self._parts.context())
            return ResizingSink(lambda: self._state.actions, resizing, self._remove_first)
        handle = self._handler(pending)
        if handle is not None:
            return self._gathered(frame_bytes, handle)
        return ForwardingSink(lambda: self._state.actions, ToClient, self._remove_first)

    def _handler(self, pending: Pending | SpeculativeFetch) -> Callable[[memoryview], None] | None:
        """Return the function that handles a whole response; None if it is forwarded in pieces."""
        match pending:
            case LoginStep():
                return lambda frame: self._handle_login(pending, frame)
            case RewrittenResponse():
                return lambda frame: self._rewrite(pending, frame)
            case RewrittenExchange():
                return lambda frame: self._handle_exchange(pending, frame)
            case GatheredFetch():
                return lambda frame: self._handle_fetch(pending, frame)
            case SpeculativeFetch():
                return lambda frame: self._handle_speculative(pending, frame)
            case OwnLogEndsRequest():
                return lambda frame: self._handle_own_response(pending, frame)
            case OwnTopicIdsRequest():
                return self._handle_topic_ids
            case _:
                return None

    def _gathered(self, frame_bytes: int, handle: Callable[[memoryview], None]) -> GatheringSink:
        return GatheringSink(
            frame_bytes,
            handle,
            limit_bytes=self._parts.limits.gathered_answer_bytes,
            too_large=DisconnectCause.ANSWER_TOO_LARGE,
        )

    def _note(self, error_code: int) -> None:
        if error_code and self._misdirected.record(error_code, self._parts.clock.monotonic_ms()):
            self._state.is_misdirected = True

    def _end_streamed(self, pending: StreamedFetch) -> None:
        if pending.patches.is_refused:
            self._note(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._remove_first()

    def _remove_first(self) -> None:
        """Remove the first pending request, which is answered."""
        self._state.pending.popleft()
        self._state.give_own_responses()

    def _remove_own(self, own: SpeculativeFetch | OwnLogEndsRequest) -> None:
        """Remove an answered request of the gateway, which need not be the first one pending."""
        self._state.pending.remove(own)
        self._state.give_own_responses()

    def _give(self, parts: list[Buffer]) -> None:
        self._state.respond(parts)
        self._remove_first()

    def _handle_login(self, pending: LoginStep, frame: memoryview) -> None:
        self._state.login.process_response(pending.api_key, pending.version, frame)
        self._pass_on(frame)

    def _rewrite(self, pending: RewrittenResponse, frame: memoryview) -> None:
        api, version = pending.rewrite.api, pending.version
        if api.key == API_VERSIONS.key and _is_refused(frame):
            self._pass_on(frame)
            return
        header, response = read_response(api, version, frame)
        changed = pending.rewrite.response(response, self._parts.context())
        parts = response_parts(
            api,
            version,
            changed,
            correlation_id=header.correlation_id,
            header_tags=header.unknown_tags,
        )
        self._give(parts)

    def _pass_on(self, frame: memoryview) -> None:
        self._give([len(frame).to_bytes(SIZE_BYTES, "big"), frame])

    def _handle_exchange(self, pending: RewrittenExchange, frame: memoryview) -> None:
        header, response = read_response(pending.rewrite.api, pending.version, frame)
        pending = replace(pending, header_tags=header.unknown_tags)
        exchange = Exchange(
            version=pending.version,
            request=pending.request,
            response=response,
            sent=pending.sent,
        )
        if any(pending.rewrite.names(pending.request)):
            # The exchange waits for the topic ids, which were requested after it.
            self._state.pending.popleft()
            self._unconfirmed = pending, exchange
        else:
            self._rewrite_exchange(pending, exchange, self._parts.context())

    def _rewrite_exchange(
        self,
        pending: RewrittenExchange,
        exchange: Exchange[Message, Message],
        context: GatewayContext,
    ) -> None:
        self._wait(pending)
        context = replace(context, started_ms=self._parts.clock.monotonic_ms())
        self._state.actions.append(
            RewriteExchange(rewrite=pending.rewrite, exchange=exchange, context=context)
        )

    def _handle_topic_ids(self, frame: memoryview) -> None:
        _, response = read_response(METADATA, METADATA_VERSION, frame)
        ids = topic_ids(response)
        pending = self._state.pending
        pending.popleft()
        if self._unconfirmed is None:
            fetch = next(each for each in pending if isinstance(each, GatheredFetch))
            fetch.exchange.record_topic_ids(ids)
            if fetch is pending[0]:
                self._read_remote(fetch)
            return
        (waiting, exchange), self._unconfirmed = self._unconfirmed, None
        pending.appendleft(waiting)
        context = self._parts.context()
        names = tuple(waiting.rewrite.names(waiting.request))
        topics = context.topics.confirmed(names, ids)
        exchange = replace(exchange, leader_epochs=leader_epochs(response))
        self._rewrite_exchange(waiting, exchange, replace(context, topics=topics))

    def _handle_own_response(self, pending: OwnLogEndsRequest, frame: memoryview) -> None:
        _, response = read_response(LIST_OFFSETS, LIST_OFFSETS_VERSION, frame)
        pending.log_ends.record_response(pending.end, response)
        self._remove_own(pending)
        if pending.end is not LogEndKind.HIGH_WATERMARK:
            return
        now_ms = self._parts.clock.monotonic_ms()
        pending.exchange.record_log_ends(pending.log_ends.ends(), now_ms)
        if pending.is_after_fetch:
            fetch = self._state.pending[0]
            assert isinstance(fetch, GatheredFetch)
            self._read_remote(fetch)

    def _handle_fetch(self, pending: GatheredFetch, frame: memoryview) -> None:
        header, response = read_response(FETCH, pending.version, frame)
        if header.unknown_tags:
            pending = replace(pending, header_tags=header.unknown_tags)
        if pending.version >= FIRST_VERSION:
            exchange = pending.exchange
            self._state.out_of_range_cache.record(
                exchange.plan, exchange.client_id, response, pending.asked_ms
            )
        if any(
            partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            for topic in response.responses
            for partition in topic.partitions
        ):
            self._note(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        response = remove_leader_endpoints(response)
        log_ends = pending.exchange.record_response(response, self._parts.clock.monotonic_ms())
        owed = self._state.pending
        owed.popleft()
        if log_ends is None and is_only_speculative(owed):
            owed.appendleft(pending)
            self._read_remote(pending)
            return
        # The Fetch stays pending, after the gateway's own requests for it.
        if log_ends is not None:
            request_log_ends(self._state, pending.exchange, log_ends, is_after_fetch=True)
        owed.append(pending)

    def _handle_speculative(self, pending: SpeculativeFetch, frame: memoryview) -> None:
        if pending.claimed_by is not None:
            self._handle_fetch(pending.claimed_by, frame)
            return
        self._remove_own(pending)
        self._speculative_fetcher.process_response(pending, frame)

    def _read_remote(self, fetch: GatheredFetch) -> None:
        wanted = fetch.exchange.plan_reads()
        if wanted is None:
            self._state.actions.append(PrefetchHint(reads=(), read_committed=False))
            self._finish_fetch(fetch, ())
        else:
            self._wait(fetch)
            self._state.actions.append(wanted)

    def _finish_fetch(self, fetch: GatheredFetch, outcomes: Sequence[RemoteOutcome]) -> None:
        response = fetch.exchange.merge(outcomes)
        parts = response_parts(
            FETCH,
            fetch.version,
            response,
            correlation_id=fetch.correlation_id,
            header_tags=fetch.header_tags,
        )
        self._speculative_fetcher.plan_next(fetch, outcomes)
        self._state.respond(parts, lambda: release_all(outcomes))
        self._state.is_gathering = False
        self._remove_first()


def _is_refused(frame: memoryview) -> bool:
    """Return whether the broker refused ApiVersions, with a response in version 0 (KIP-511)."""
    error = frame[_AFTER_CORRELATION_ID : _AFTER_CORRELATION_ID + 2]
    return int.from_bytes(error, "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION


def _first_error_code(
    pending: Pending | SpeculativeFetch, data: memoryview, frame_bytes: int
) -> int | None:
    match pending:
        case PendingRelay():
            api_key = pending.api_key
        case RewrittenResponse() | StreamedResponse() | RewrittenExchange():
            api_key = pending.rewrite.api.key
        case _:
            return ErrorCode.NONE
    return first_error_code(api_key, pending.version, data, frame_bytes=frame_bytes)
