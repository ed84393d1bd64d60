"""Defines the kinds of in-flight requests, by how the gateway treats the response. Pure.

Brokers respond to a connection's requests in order, so sessions queue these in the order of
sending. Correlation ids serve only as a check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.log_ends import LogEndKind, LogEndsRequests
from rlm.gateway.fetch.streamed_response import FetchPatches
from rlm.gateway.model.rewrite import ExchangeRewrite, ResponseRewrite, StreamRewrite
from rlm.wire.schema import Buffer, Message, UnknownTags


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRelay:
    """Represents a response that is relayed to the client as it arrives."""

    correlation_id: int
    api_key: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginStep:
    """Represents a relayed response that shows the progress of the client's SASL login."""

    correlation_id: int
    api_key: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenResponse:
    """Represents a response that is rewritten without regard to its request."""

    correlation_id: int
    version: int
    rewrite: ResponseRewrite[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedResponse:
    """Represents a response that is rewritten in transit, without regard to its request."""

    correlation_id: int
    version: int
    rewrite: StreamRewrite[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenExchange:
    """Represents a response whose rewrite depends on the request; the rewrite may block.

    `sent`: the request to the broker, if it differs from the client's. `header_tags`: the tags of
    the broker's response, once it has arrived.
    """

    correlation_id: int
    version: int
    rewrite: ExchangeRewrite[Any, Any]
    request: Message
    sent: Message | None = None
    header_tags: UnknownTags = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedFetch:
    """Represents a Fetch response that is changed in place while it passes."""

    correlation_id: int
    version: int
    patches: FetchPatches


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredFetch:
    """Represents a Fetch whose response is merged with records from the remote log.

    `asked_ms`: when the Fetch was sent to the broker. `header_tags`: as in RewrittenExchange.
    """

    correlation_id: int
    version: int
    exchange: FetchExchange
    asked_ms: int
    header_tags: UnknownTags = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLogEndsRequest:
    """Represents the gateway's own ListOffsets request for one kind of end of several logs.

    `is_after_fetch`: it was sent after the response to the Fetch, which now waits for it.
    """

    correlation_id: int
    end: LogEndKind
    log_ends: LogEndsRequests
    exchange: FetchExchange
    is_after_fetch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTopicIdsRequest:
    """Represents the gateway's own Metadata request for the ids of topics that a request names."""

    correlation_id: int


@dataclass(frozen=True, slots=True)
class OwnResponse:
    """Represents a response by the gateway itself, sent after those to earlier requests."""

    parts: list[Buffer]


Pending = (
    PendingRelay
    | LoginStep
    | RewrittenResponse
    | StreamedResponse
    | RewrittenExchange
    | StreamedFetch
    | GatheredFetch
    | OwnLogEndsRequest
    | OwnTopicIdsRequest
    | OwnResponse
)
