"""What one API's rewrite is: the vocabulary of the table in rlm.gateway.rewriting.rewrite_table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol

from rlm.gateway.model.context import GatewayContext
from rlm.wire.schema import Api, Buffer, RequestT, ResponseT, Versions

_ALL_VERSIONS = Versions.parse("0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRewrite(Generic[RequestT, ResponseT]):
    """Only the response is changed, whatever was asked; the request passes as it came.

    In versions outside of `versions` there is nothing to change: they pass as they are.
    """

    api: Api[RequestT, ResponseT]
    response: Callable[[ResponseT, GatewayContext], ResponseT]
    versions: Versions = _ALL_VERSIONS


class AnswerScanner(Protocol):
    """One response on its way. Its functions raise CorruptError for what is no such response."""

    @property
    def frame_bytes(self) -> int | None:
        """The size of what is passed on; None until it is known, and then nothing is passed on."""

    def feed(self, chunk: memoryview, /) -> Sequence[Buffer]:
        """Take the next bytes behind the size field; returns what may be passed on."""

    @property
    def passing_bytes(self) -> int:
        """How many of the next bytes may go by unseen."""

    def passed(self, count: int, /) -> None:
        """So many of them did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRewrite(Generic[RequestT, ResponseT]):
    """As AnswerRewrite, of a response that may be large: it is changed while it passes.

    `scanner` is given the version and the size of the frame.
    """

    api: Api[RequestT, ResponseT]
    scanner: Callable[[int, int, GatewayContext], AnswerScanner]
    versions: Versions = _ALL_VERSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Generic[RequestT, ResponseT]):
    """A request as the client sent it, and the broker's response to what was sent on.

    `sent` is what that was; None: the request as it came. `leader_epochs`, by topic and partition:
    what the broker said of them behind its answer, where it was asked what the names stand for.
    """

    version: int
    request: RequestT
    response: ResponseT
    sent: RequestT | None = None
    leader_epochs: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRewrite(Generic[RequestT, ResponseT]):
    """The response depends on the request, so both are decoded.

    `request` makes what is sent on; None: as it came. `concerns` tells from the client's request
    whether there is anything to change: if not, both pass as they are. `response` may block on the
    metadata topic and on the store: it is run off the loop. It raises nothing for what may happen
    to either: that becomes a partition's error. `waits_for_store` tells from the client's request
    whether it may block on the store. `names`: the topics by whose names alone the request says
    which partitions it means; empty where it doesn't matter.
    """

    api: Api[RequestT, ResponseT]
    concerns: Callable[[RequestT, GatewayContext], bool]
    response: Callable[[Exchange[RequestT, ResponseT], GatewayContext], ResponseT]
    request: Callable[[RequestT, GatewayContext], RequestT] | None = None
    names: Callable[[RequestT], Iterable[str]] = lambda _request: ()
    waits_for_store: Callable[[RequestT], bool] = lambda _request: False
