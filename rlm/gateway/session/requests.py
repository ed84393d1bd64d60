"""Processes requests from the client to the broker: one half of a session. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.plan import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    FetchPlan,
    is_incremental_fetch,
)
from rlm.gateway.fetch.streamed_response import FetchPatches
from rlm.gateway.model.actions import ToBroker
from rlm.gateway.model.disconnect_cause import ConnectionRefusedByGatewayError, DisconnectCause
from rlm.gateway.model.rewrite import ExchangeRewrite, ResponseRewrite, StreamRewrite
from rlm.gateway.rewriting.api_versions import REFUSED_VERSION
from rlm.gateway.rewriting.rewrite_table import REWRITES
from rlm.gateway.session.frame_sinks import ForwardingSink, GatheringSink
from rlm.gateway.session.frames import FrameSink, FrameStream
from rlm.gateway.session.in_flight import (
    GatheredFetch,
    LoginStep,
    OwnResponse,
    Pending,
    PendingRelay,
    RewrittenExchange,
    RewrittenResponse,
    StreamedFetch,
    StreamedResponse,
)
from rlm.gateway.session.out_of_range_cache import FIRST_VERSION
from rlm.gateway.session.own_requests import request_log_ends, request_topic_ids
from rlm.gateway.session.request_treatment import RequestTreatment, has_response, treatment_of
from rlm.gateway.session.sasl_login import is_login_step
from rlm.gateway.session.session_state import SessionParts, SessionState
from rlm.gateway.session.speculative_fetch import SpeculativeFetch
from rlm.gateway.session.speculative_fetcher import SpeculativeFetcher, is_only_speculative
from rlm.wire.api.api_versions import API_VERSIONS
from rlm.wire.api.fetch import FETCH, FetchRequest, FetchResponse
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frame_heads import RequestHead, read_request_head
from rlm.wire.frames import (
    SIZE_BYTES,
    RequestHeader,
    read_request,
    request_frame,
    response_parts,
)

_DECODED = (RequestTreatment.FETCH, RequestTreatment.REWRITE_EXCHANGE)


class ClientRequests:
    """Represents the requests of one client.

    `stream` takes the client's bytes; its errors close the connection. `has_started`: a request
    other than ApiVersions or a SASL login has arrived.
    """

    def __init__(
        self,
        parts: SessionParts,
        state: SessionState,
        speculative: SpeculativeFetcher,
        read_store: Callable[[GatheredFetch], None],
    ) -> None:
        """`read_store` takes a Fetch that the broker has answered already."""
        self._parts = parts
        self._state = state
        self._speculative_fetcher = speculative
        self._read_store = read_store
        self.has_started = False
        self.stream = FrameStream(self._begin, max_frame_bytes=parts.limits.request_bytes)

    def _begin(self, data: memoryview, frame_bytes: int) -> FrameSink | None:
        head = read_request_head(data, frame_bytes=frame_bytes)
        if head is None:
            return None
        treatment = treatment_of(head)
        self.has_started = self.has_started or not _is_beginning(head)
        if treatment is RequestTreatment.REFUSE_API_VERSIONS:
            return self._gathered(frame_bytes, lambda _frame: self._refuse_api_versions(head))
        if treatment in _DECODED and self._state.login.is_missing:
            raise ConnectionRefusedByGatewayError(
                DisconnectCause.NOT_LOGGED_IN, f"api_key={head.api_key}"
            )
        if treatment is RequestTreatment.FETCH:
            return self._gathered(frame_bytes, lambda frame: self._fetch(head, frame))
        if treatment is RequestTreatment.REWRITE_EXCHANGE:
            return self._gathered(frame_bytes, lambda frame: self._exchange(head, frame))
        will_be_answered = has_response(head, data, frame_bytes=frame_bytes)
        if will_be_answered is None:
            return None
        if will_be_answered:
            self._expect_response(_pending_of(head, treatment))
        return ForwardingSink(lambda: self._state.actions, ToBroker, _nothing_more)

    def _gathered(self, frame_bytes: int, handle: Callable[[memoryview], None]) -> GatheringSink:
        return GatheringSink(
            frame_bytes,
            handle,
            limit_bytes=self._parts.limits.gathered_request_bytes,
            too_large=DisconnectCause.REQUEST_TOO_LARGE,
        )

    def _expect_response(self, pending: Pending) -> None:
        self._state.pending.append(pending)
        if len(self._state.pending) >= self._parts.limits.pipelined_count:
            self.stream.stopped = True

    def _refuse_api_versions(self, head: RequestHead) -> None:
        parts = response_parts(API_VERSIONS, 0, REFUSED_VERSION, correlation_id=head.correlation_id)
        self._expect_response(OwnResponse(parts))
        self._state.give_own_responses()

    def _exchange(self, head: RequestHead, frame: memoryview) -> None:
        rewrite = REWRITES[head.api_key]
        assert isinstance(rewrite, ExchangeRewrite)
        header, request = read_request(rewrite.api, head.api_version, frame)
        context = self._parts.context()
        if not rewrite.can_change(request, context):
            self._expect_response(_relay_of(head))
            self._send_frame(frame)
            return
        version = head.api_version
        sent = None if rewrite.request is None else rewrite.request(version, request, context)
        self._expect_response(
            RewrittenExchange(
                correlation_id=head.correlation_id,
                version=head.api_version,
                rewrite=rewrite,
                request=request,
                sent=sent,
            )
        )
        if sent is None:
            self._send_frame(frame)
        else:
            self._send(
                request_frame(
                    rewrite.api,
                    head.api_version,
                    sent,
                    correlation_id=header.correlation_id,
                    client_id=header.client_id,
                    header_tags=header.unknown_tags,
                )
            )
        if names := tuple(rewrite.names(request)):
            request_topic_ids(self._state, names)

    def _fetch(self, head: RequestHead, frame: memoryview) -> None:
        version = head.api_version
        if self._speculative_fetcher.is_frame_next(frame):
            self._claim(self._speculative_fetcher.take(), head)
            return
        header, asked = read_request(FETCH, version, frame)
        _refuse_replicas(asked)
        request, limit_bytes = asked, self._parts.limits.fetch_max_bytes
        if asked.max_bytes > limit_bytes:
            request = replace(asked, max_bytes=limit_bytes)
        if is_incremental_fetch(request):
            self._refuse_session(header, version)
            return
        if self._speculative_fetcher.is_next(header, version, request):
            self._claim(self._speculative_fetcher.take(), head)
            return
        self._speculative_fetcher.give_up()
        plan = self._parts.plan(request, version)
        if self._respond_from_cache(plan, head):
            return
        exchange = self._gather(plan, head) if plan.remote else None
        if exchange is None:
            patches = FetchPatches(plan, self._parts.local_starts)
            self._expect_response(
                StreamedFetch(
                    correlation_id=header.correlation_id, version=version, patches=patches
                )
            )
        sent = plan.sent()
        if sent == asked:
            self._send_frame(frame)
        else:
            self._send_fetch(sent, header, version)
        if exchange is not None:
            self._expect(exchange)
        if plan.remote and version < FIRST_VERSION_WITH_TOPIC_IDS:
            request_topic_ids(self._state, plan.names)

    def _claim(self, speculative: SpeculativeFetch, head: RequestHead) -> None:
        """Use the speculative fetch for this request."""
        fetch = GatheredFetch(
            correlation_id=head.correlation_id,
            version=head.api_version,
            exchange=speculative.exchange,
            asked_ms=speculative.asked_ms,
            header_tags=speculative.header_tags,
        )
        if speculative.is_answered:
            self._begin_answered(fetch)
        else:
            speculative.claimed_by = fetch
            self._pause_requests()

    def _respond_from_cache(self, plan: FetchPlan, head: RequestHead) -> bool:
        """Answer the Fetch from the out-of-range cache; return False if that is not possible."""
        if head.api_version < FIRST_VERSION or not is_only_speculative(self._state.pending):
            return False
        now_ms = self._parts.clock.monotonic_ms()
        cached = self._state.out_of_range_cache.lookup(plan, head.client_id or "", now_ms)
        if cached is None:
            return False
        exchange = self._exchange_of(plan, head)
        if exchange.record_response(cached.response, now_ms) is not None:
            return False
        self._begin_answered(
            GatheredFetch(
                correlation_id=head.correlation_id,
                version=head.api_version,
                exchange=exchange,
                asked_ms=cached.asked_ms,
            )
        )
        return True

    def _begin_answered(self, fetch: GatheredFetch) -> None:
        """Process a Fetch that the broker has already answered."""
        self._pause_requests()
        self._state.pending.appendleft(fetch)
        self._read_store(fetch)

    def _pause_requests(self) -> None:
        self._state.is_gathering = True
        self.stream.stopped = True

    def _expect(self, exchange: FetchExchange) -> None:
        """Announce the likely reads, so that the owner prepares them while the broker answers."""
        expected = exchange.foresee_reads(self._parts.clock.monotonic_ms())
        if expected is not None:
            self._state.actions.append(expected)

    def _gather(self, plan: FetchPlan, head: RequestHead) -> FetchExchange:
        exchange = self._exchange_of(plan, head)
        now_ms = self._parts.clock.monotonic_ms()
        log_ends = exchange.foreseen_log_ends(now_ms)
        if log_ends is not None:
            request_log_ends(self._state, exchange, log_ends, is_after_fetch=False)
        self._expect_response(
            GatheredFetch(
                correlation_id=head.correlation_id,
                version=head.api_version,
                exchange=exchange,
                asked_ms=now_ms,
            )
        )
        self._pause_requests()
        return exchange

    def _exchange_of(self, plan: FetchPlan, head: RequestHead) -> FetchExchange:
        return self._parts.exchange(
            plan,
            head.api_version,
            known_ends=self._state.known_ends,
            client_id=head.client_id or "",
        )

    def _send_fetch(self, sent: FetchRequest, header: RequestHeader, version: int) -> None:
        self._send(
            request_frame(
                FETCH,
                version,
                sent,
                correlation_id=header.correlation_id,
                client_id=header.client_id,
                header_tags=header.unknown_tags,
            )
        )

    def _refuse_session(self, header: RequestHeader, version: int) -> None:
        """Refuse an incremental fetch (KIP-227), because the gateway never creates a session."""
        refusal = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        parts = response_parts(FETCH, version, refusal, correlation_id=header.correlation_id)
        self._expect_response(OwnResponse(parts))
        self._state.give_own_responses()

    def _send_frame(self, frame: memoryview) -> None:
        self._send(len(frame).to_bytes(SIZE_BYTES, "big") + frame)

    def _send(self, data: bytes) -> None:
        self._state.actions.append(ToBroker(data))


def _is_beginning(head: RequestHead) -> bool:
    return head.api_key == API_VERSIONS.key or is_login_step(head)


def _pending_of(head: RequestHead, treatment: RequestTreatment) -> Pending:
    rewrite = REWRITES.get(head.api_key)
    if treatment is RequestTreatment.REWRITE_RESPONSE and isinstance(rewrite, ResponseRewrite):
        return RewrittenResponse(
            correlation_id=head.correlation_id, version=head.api_version, rewrite=rewrite
        )
    if treatment is RequestTreatment.REWRITE_RESPONSE and isinstance(rewrite, StreamRewrite):
        return StreamedResponse(
            correlation_id=head.correlation_id, version=head.api_version, rewrite=rewrite
        )
    if is_login_step(head):
        return LoginStep(
            correlation_id=head.correlation_id, api_key=head.api_key, version=head.api_version
        )
    return _relay_of(head)


def _relay_of(head: RequestHead) -> PendingRelay:
    return PendingRelay(
        correlation_id=head.correlation_id, api_key=head.api_key, version=head.api_version
    )


def _refuse_replicas(request: FetchRequest) -> None:
    """Refuse fetches by followers, which must replicate the leader's local log exactly."""
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        raise ConnectionRefusedByGatewayError(DisconnectCause.REPLICA_FETCH)


def _nothing_more() -> None:
    """Do nothing after a forwarded request."""
