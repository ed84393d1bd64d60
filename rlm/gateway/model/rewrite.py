"""Defines the kinds of rewrites for the table in rlm.gateway.rewriting.rewrite_table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol

from rlm.gateway.model.context import GatewayContext
from rlm.wire.schema import Api, Buffer, RequestT, ResponseT, Versions

_ALL_VERSIONS = Versions.parse("0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRewrite(Generic[RequestT, ResponseT]):
    """Changes only the response, independently of the request, which passes unchanged.

    Versions outside of `versions` need no change and pass unchanged.
    """

    api: Api[RequestT, ResponseT]
    response: Callable[[ResponseT, GatewayContext], ResponseT]
    versions: Versions = _ALL_VERSIONS


class ResponseScanner(Protocol):
    """Changes one response while it passes. Raises CorruptError for a malformed response."""

    @property
    def frame_bytes(self) -> int | None:
        """Return the changed frame's size; None until it is known. Until then, nothing passes."""

    def feed(self, chunk: memoryview, /) -> Sequence[Buffer]:
        """Process the next bytes of the frame after its size field; return the bytes to pass on."""

    @property
    def passing_bytes(self) -> int:
        """Return how many of the next bytes may pass without being scanned."""

    def skip(self, count: int, /) -> None:
        """Skip `count` bytes, which passed without being scanned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRewrite(Generic[RequestT, ResponseT]):
    """Changes only the response, piece by piece as it passes, because it may be large.

    `scanner` takes the API version, the size of the frame, and the context.
    """

    api: Api[RequestT, ResponseT]
    scanner: Callable[[int, int, GatewayContext], ResponseScanner]
    versions: Versions = _ALL_VERSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Generic[RequestT, ResponseT]):
    """Represents a request as the client sent it, and the broker's response.

    `sent` is the changed request that the broker received; None if the request passed unchanged.
    `leader_epochs` contains the epochs that the broker reported with the topic ids, by topic and
    partition. It is empty if the gateway requested no ids.
    """

    version: int
    request: RequestT
    response: ResponseT
    sent: RequestT | None = None
    leader_epochs: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRewrite(Generic[RequestT, ResponseT]):
    """Changes the response depending on the request, so the gateway decodes both.

    `can_change` returns whether the request or its response may need a change; otherwise both pass
    unchanged. `request` returns the request to send, in the given version; if it is None, the
    client's request passes unchanged. `names` returns the topics that the request identifies only
    by name; empty if irrelevant.

    `response` may block on the metadata topic and on the store, so it runs outside of the loop. It
    returns their errors as error codes of partitions, and never raises them. `waits_for_store`
    returns whether `response` may block on the store for this request.
    """

    api: Api[RequestT, ResponseT]
    can_change: Callable[[RequestT, GatewayContext], bool]
    response: Callable[[Exchange[RequestT, ResponseT], GatewayContext], ResponseT]
    request: Callable[[int, RequestT, GatewayContext], RequestT | None] | None = None
    names: Callable[[RequestT], Iterable[str]] = lambda _request: ()
    waits_for_store: Callable[[RequestT], bool] = lambda _request: False
