"""Defines a speculative fetch, and when a client's Fetch may use its response. Pure.

The gateway sends the speculative fetch on the client's upstream connection, with the client's id.
So the broker authorizes, counts and throttles it as the client's own fetch. The client's next
request uses the response if it is the expected request (with any correlation id), it arrives in
time, and nothing else is in flight. Otherwise the gateway drops the response, which normally
contains no records. It then sends no speculative fetches for the client's next PAUSE_COUNT fetches.
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
"""How long a speculative response may be used. A normal request may be in flight as long."""
_CORRELATION_ID, _AFTER_CORRELATION_ID = 4, 8  # These are positions in a request without its size.


def speculative_request(plan: FetchPlan) -> FetchRequest:
    """Return the request to the broker. It allows no wait, and few records if there are any."""
    return replace(plan.sent(), max_wait_ms=0, min_bytes=0, max_bytes=1)


@dataclass(slots=True, kw_only=True, eq=False)
class SpeculativeFetch:
    """Represents a speculative fetch, which is in flight until the broker answers.

    `frame`: the expected request of the client, with its size, as most clients encode it, except
    for the correlation id. `asked_ms`: when the broker was asked. `ends_ms`: until when the
    response may be used. `is_answered`: the broker has answered that it has none of the records.
    `claimed_by`: the client's Fetch, if it came before the broker's response.
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
        """Return whether the response and the known log ends are recent enough to be used."""
        return now_ms <= self.ends_ms and self.exchange.foreseen_log_ends(now_ms) is None

    def is_frame(self, frame: memoryview) -> bool:
        """Return whether a client's request has the same bytes; `is_request` compares fields."""
        return (
            len(frame) == len(self.frame) - SIZE_BYTES
            and frame[_AFTER_CORRELATION_ID:] == self.frame[SIZE_BYTES + _AFTER_CORRELATION_ID :]
            and frame[:_CORRELATION_ID] == self.frame[SIZE_BYTES : SIZE_BYTES + _CORRELATION_ID]
        )

    def is_request(self, header: RequestHeader, version: int, request: FetchRequest) -> bool:
        """Return whether a client's decoded request equals the expected one."""
        return (
            request == self.request
            and version == self.version
            and (header.client_id or "") == self.exchange.client_id
            and not header.unknown_tags
        )
