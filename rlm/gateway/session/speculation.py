"""A Fetch that the broker is asked before the client asks it, and when that counts. Pure.

It is asked on the client's own connection, under its client id, so that the broker authorizes it,
counts it and throttles it as the client's own. If the next request is that one but for its
correlation id, comes before it is too old, and nothing else is under way, the broker's answer is
taken as the answer to it. Else it is dropped, which costs an answer without records, and that
client is not asked for ahead for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.plan import FetchPlan
from rlm.gateway.session.in_flight import GatheredFetch
from rlm.wire.api.fetch import FetchRequest
from rlm.wire.frames import SIZE_BYTES, RequestHeader
from rlm.wire.schema import UnknownTags

CORRELATION_ID = -1
MAX_AGE_MS = 100
"""Longer than readers take who gain by it, and no longer than a request may be under way."""
_CORRELATION_ID, _AFTER_CORRELATION_ID = 4, 8  # in a request without its size


def speculative_request(plan: FetchPlan) -> FetchRequest:
    """As the broker is asked: should it have the records after all, few of them, and no wait."""
    return replace(plan.sent(), max_wait_ms=0, min_bytes=0, max_bytes=1)


@dataclass(slots=True, kw_only=True, eq=False)
class SpeculativeFetch:
    """One; stands among what the broker owes until it is answered.

    `frame`: the client's request, its size first, as most clients would send it, but for its
    correlation id. `asked_ms`: when the broker was asked. `ends_ms`: until when that counts.
    `is_answered`: the broker has said of all of it that it has it not. `claimed_by`: the client's
    request, if it came before the answer.
    """

    version: int
    request: FetchRequest
    frame: bytes
    exchange: FetchExchange
    asked_ms: int
    ends_ms: int
    header_tags: UnknownTags = ()
    is_answered: bool = False
    claimed_by: GatheredFetch | None = None

    @property
    def correlation_id(self) -> int:
        return CORRELATION_ID

    def is_young(self, now_ms: int) -> bool:
        """Whether what is known for it still counts."""
        return now_ms <= self.ends_ms and self.exchange.foreseen_question(now_ms) is None

    def is_frame(self, frame: memoryview) -> bool:
        """Whether a client's request is this one, by its bytes; if not it still may be."""
        return (
            len(frame) == len(self.frame) - SIZE_BYTES
            and frame[_AFTER_CORRELATION_ID:] == self.frame[SIZE_BYTES + _AFTER_CORRELATION_ID :]
            and frame[:_CORRELATION_ID] == self.frame[SIZE_BYTES : SIZE_BYTES + _CORRELATION_ID]
        )

    def is_request(self, header: RequestHeader, version: int, request: FetchRequest) -> bool:
        """Whether a client's request is this one."""
        return (
            request == self.request
            and version == self.version
            and (header.client_id or "") == self.exchange.client_id
            and not header.unknown_tags
        )
