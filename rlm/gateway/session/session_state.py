"""What a session is given, and what its two halves share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.log_ends import KnownLogEnds
from rlm.gateway.fetch.plan import FetchPlan, plan_fetch
from rlm.gateway.fetch.remote_log_bounds import RemoteLogBoundsView
from rlm.gateway.model.actions import Action, AnswerToClient
from rlm.gateway.model.context import GatewayContext
from rlm.gateway.session.in_flight import OwnAnswer, Pending
from rlm.gateway.session.limits import SessionLimits
from rlm.gateway.session.out_of_range_cache import OutOfRangeCache
from rlm.gateway.session.sasl_login import ClientLogin, ListenerLogins
from rlm.gateway.session.speculation import SpeculativeFetch
from rlm.wire.api.fetch import FetchRequest
from rlm.wire.schema import Buffer
from rsm.segment.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """`context` gives the view of this moment.

    `local_starts` is shared by all sessions, `logins` by those of a listener.
    """

    context: Callable[[], GatewayContext]
    view: RemoteLogBoundsView
    local_starts: LocalStarts
    clock: Clock
    limits: SessionLimits
    logins: ListenerLogins = field(default_factory=ListenerLogins)

    def plan(self, request: FetchRequest, version: int) -> FetchPlan:
        """What is known at this moment of what a Fetch asks for."""
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
        """What becomes of it, one client's on one connection."""
        return FetchExchange(
            plan,
            version,
            known_ends=known_ends,
            local_starts=self.local_starts,
            remote_wait_ms=self.limits.remote_wait_ms,
            client_id=client_id,
        )


class SessionState:
    """What the broker owes, and what is to be done.

    `is_gathering`: a Fetch is under way of which the broker lacks a part. `is_working`: an answer
    of the broker waits for work outside of the session. `is_client_full`: the client has yet to
    take what it was sent.
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
                if login.is_wanted
                else limits.cached_response_max_age_ms
            ),
        )
        self.is_gathering = False
        self.is_working = False
        self.is_client_full = False

    def take_actions(self) -> list[Action]:
        """What is to be done since the last call."""
        actions, self.actions = self.actions, []
        return actions

    def answer(self, parts: list[Buffer], release: Callable[[], None] = lambda: None) -> None:
        """Have an answer sent that is not the broker's own bytes."""
        self.actions.append(AnswerToClient(parts=parts, release=release))

    def give_own_answers(self) -> None:
        """Give the answers for which it is time, since nothing before them is owed any more."""
        while self.pending and isinstance(self.pending[0], OwnAnswer):
            self.answer(self.pending.popleft().parts)  # type: ignore[union-attr]  # as just seen
