"""The Fetch that a reader of stored data sends next, asked of the broker before it comes. Pure.

Most of what such a reader waits for is the broker, which has to say each time that it has not got
the offset any more. While the reader takes an answer apart, nobody works. So once it was given one
that came from the store alone, the broker is asked at once what the reader would ask if it read on:
on its own connection, under its client id, so that the broker authorizes it, counts it and
throttles it as the reader's own. If the next request is that one but for its correlation id, comes
within MAX_AGE_MS, and nothing else is under way, the broker's answer is taken as the answer to it.
Else it is dropped, which costs an answer without records, and that client is not asked for ahead
for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlm.gateway.fetch_exchange import FetchExchange
from rlm.gateway.fetch_plan import FIRST_VERSION_WITH_TOPIC_IDS, FetchPlan
from rlm.gateway.pending_answers import GatheredFetch
from rlm.wire.api.fetch import FetchRequest
from rlm.wire.frames import RequestHeader
from rlm.wire.schema import UnknownTags

CORRELATION_ID = -1
MAX_AGE_MS = 100
"""Longer than readers take who gain by it, and no longer than a request may be under way."""
PAUSE_COUNT = 16
"""So many fetches are not asked for ahead after one that was in vain."""
FIRST_VERSION = (
    FIRST_VERSION_WITH_TOPIC_IDS  # before, it is asked each time what the names stand for
)


def sent_ahead(plan: FetchPlan) -> FetchRequest:
    """As the broker is asked: should it have the records after all, few of them, and no wait."""
    return replace(plan.sent, max_wait_ms=0, min_bytes=0, max_bytes=1)


@dataclass(slots=True, kw_only=True)
class FetchAhead:
    """One; stands among what the broker owes until it is answered.

    `is_answered`: the broker has said of all of it that it has it not. `adopted`: the client's
    request, if it came before the answer.
    """

    version: int
    client_id: str
    request: FetchRequest
    exchange: FetchExchange
    asked_ms: int
    header_tags: UnknownTags = ()
    is_answered: bool = False
    adopted: GatheredFetch | None = None

    @property
    def correlation_id(self) -> int:
        return CORRELATION_ID

    def is_what(
        self,
        header: RequestHeader,
        version: int,
        request: FetchRequest,
        *,
        now_ms: int,
    ) -> bool:
        """Whether a client's request is this one, and what is known for it young enough."""
        return (
            request == self.request
            and version == self.version
            and (header.client_id or "") == self.client_id
            and not header.unknown_tags
            and now_ms - self.asked_ms <= MAX_AGE_MS
            and self.exchange.foreseen_question(now_ms) is None
        )
