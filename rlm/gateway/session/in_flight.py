"""What the broker still owes an answer to, and what is to be done with each. Pure.

Brokers answer a connection's requests in order, so these stand in the order of sending; their
correlation ids are only checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.log_ends import LogEndKind, LogEndsQuestion
from rlm.gateway.fetch.stream import FetchPatches
from rlm.gateway.model.rewrite import AnswerRewrite, ExchangeRewrite, StreamRewrite
from rlm.wire.schema import Buffer, Message, UnknownTags


@dataclass(frozen=True, slots=True)
class PendingRelay:
    """Goes to the client as it comes."""

    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginStep:
    """Goes to the client as it came, and says how far the client's login is."""

    correlation_id: int
    api_key: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenAnswer:
    """Is changed, whatever was asked."""

    correlation_id: int
    version: int
    rewrite: AnswerRewrite[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedAnswer:
    """Is changed while it passes, whatever was asked."""

    correlation_id: int
    version: int
    rewrite: StreamRewrite[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenExchange:
    """Is changed by what was asked, which may take a while.

    `sent` is what the broker was asked instead, if anything else. `header_tags` are those of its
    answer, once that came.
    """

    correlation_id: int
    version: int
    rewrite: ExchangeRewrite[Any, Any]
    request: Message
    sent: Message | None = None
    header_tags: UnknownTags = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedFetch:
    """Is changed in place while it passes."""

    correlation_id: int
    version: int
    patches: FetchPatches


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredFetch:
    """Is put together with what the store has; `header_tags` as of RewrittenExchange.

    `asked_ms`: when the broker was asked.
    """

    correlation_id: int
    version: int
    exchange: FetchExchange
    asked_ms: int
    header_tags: UnknownTags = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuestion:
    """Answers us, about one end of some logs, and is not for the client."""

    correlation_id: int
    end: LogEndKind
    question: LogEndsQuestion
    exchange: FetchExchange
    is_behind_fetch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdsQuestion:
    """Answers us, which topics the names in the request before it stood for."""

    correlation_id: int


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """Nothing was sent: this is the answer, once it is its turn."""

    parts: list[Buffer]


Pending = (
    PendingRelay
    | LoginStep
    | RewrittenAnswer
    | StreamedAnswer
    | RewrittenExchange
    | StreamedFetch
    | GatheredFetch
    | OwnQuestion
    | TopicIdsQuestion
    | OwnAnswer
)
