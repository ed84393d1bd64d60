"""Defines the limits and shared parts of sessions, and the state that a session's halves share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.log_ends import KnownLogEnds
from rlm.gateway.fetch.plan import FetchPlan, plan_fetch
from rlm.gateway.fetch.remote_log_bounds import RemoteLogBoundsView
from rlm.gateway.model.actions import Action, ResponseToClient
from rlm.gateway.model.context import GatewayContext
from rlm.gateway.session.in_flight import OwnResponse, Pending
from rlm.gateway.session.out_of_range_cache import OutOfRangeCache
from rlm.gateway.session.sasl_login import ClientLogin, ListenerLogins
from rlm.gateway.session.speculative_fetch import SpeculativeFetch
from rlm.wire.api.fetch import FetchRequest
from rlm.wire.schema import Buffer
from rsm.segment.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Represents the limits of a session.

    Memory: about `gathered_request_bytes` + `gathered_answer_bytes`.

    `request_bytes` limits any request, like the broker's `socket.request.max.bytes`. The gathered
    limits apply to messages that must be buffered whole. With `pipelined_count` requests in flight,
    the session starts no further one. `remote_wait_ms` limits a fetch's wait for the store.
    `fetch_max_bytes` limits a fetch's response except for the first batch, like the broker's
    `fetch.max.bytes`. `log_ends_age_ms`: how long a broker's response about log ends is used.
    `cached_response_max_age_ms`: the same for the out-of-range cache on listeners without SASL; 0
    disables the cache. `logged_in_cached_response_max_age_ms`: the same on listeners with SASL.
    """

    request_bytes: int = 104_857_600
    gathered_request_bytes: int = 1 << 20
    gathered_answer_bytes: int = 104_857_600
    fetch_max_bytes: int = 57_671_680
    pipelined_count: int = 1_000
    remote_wait_ms: int = 500
    log_ends_age_ms: int = 1_000
    cached_response_max_age_ms: int = 100
    logged_in_cached_response_max_age_ms: int = 0

    def __post_init__(self) -> None:
        if min(self.request_bytes, self.gathered_request_bytes, self.gathered_answer_bytes) <= 0:
            raise ValueError(f"a session limit is invalid: sizes must be above 0: {self}")
        if min(self.pipelined_count, self.fetch_max_bytes) <= 0:
            raise ValueError(f"a session limit is invalid: it must be above 0: {self}")
        if min(self.remote_wait_ms, self.log_ends_age_ms) < 0:
            raise ValueError(f"a session limit is invalid: times must be at least 0: {self}")
        if min(self.cached_response_max_age_ms, self.logged_in_cached_response_max_age_ms) < 0:
            raise ValueError(f"a session limit is invalid: times must be at least 0: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """Represents the parts that sessions share.

    `context` returns the current snapshot. All sessions share `local_starts`; those of a listener
    share `logins`.
    """

    context: Callable[[], GatewayContext]
    view: RemoteLogBoundsView
    local_starts: LocalStarts
    clock: Clock
    limits: SessionLimits
    logins: ListenerLogins = field(default_factory=ListenerLogins)

    def plan(self, request: FetchRequest, version: int) -> FetchPlan:
        """Plan a Fetch with the current view."""
        return plan_fetch(
            request,
            version,
            topics=self.context().topics,
            view=self.view,
            local_starts=self.local_starts,
        )

    def exchange(
        self, plan: FetchPlan, version: int, *, known_ends: KnownLogEnds, client_id: str
    ) -> FetchExchange:
        """Create the exchange that carries out a plan for one client."""
        return FetchExchange(
            plan,
            version,
            known_ends=known_ends,
            local_starts=self.local_starts,
            remote_wait_ms=self.limits.remote_wait_ms,
            client_id=client_id,
        )


class SessionState:
    """Represents the in-flight requests of a session, and the actions that its owner must take.

    `is_gathering`: the session assembles the response to a Fetch that needs stored data.
    `is_working`: a response waits for work outside of the session. `is_client_full`: responses wait
    for the client. `is_misdirected`: the client keeps sending requests that only another broker can
    serve.
    """

    def __init__(self, limits: SessionLimits, login: ClientLogin) -> None:
        self.login = login
        self.pending: deque[Pending | SpeculativeFetch] = deque()
        self.actions: list[Action] = []
        self.known_ends = KnownLogEnds(max_age_ms=limits.log_ends_age_ms)
        self.out_of_range_cache = OutOfRangeCache(
            self.known_ends,
            max_age_ms=lambda: (
                limits.logged_in_cached_response_max_age_ms
                if login.uses_sasl
                else limits.cached_response_max_age_ms
            ),
        )
        self.is_gathering = False
        self.is_working = False
        self.is_client_full = False
        self.is_misdirected = False

    def take_actions(self) -> list[Action]:
        """Return and clear the actions since the last call."""
        actions, self.actions = self.actions, []
        return actions

    def respond(self, parts: list[Buffer], release: Callable[[], None] = lambda: None) -> None:
        """Send a response whose bytes are not in the broker's receive buffer."""
        self.actions.append(ResponseToClient(parts=parts, release=release))

    def give_own_responses(self) -> None:
        """Send the gateway's own responses at the front of the in-flight requests."""
        while self.pending and isinstance(self.pending[0], OwnResponse):
            self.respond(self.pending.popleft().parts)  # type: ignore[union-attr]  # as just seen
