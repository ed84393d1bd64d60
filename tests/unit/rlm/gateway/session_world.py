"""A session between a client and a scripted broker, all in memory.

Either side's bytes may be cut into any chunks; received bytes are joined to frames again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import UUID

from rlm.config.values import HostPort
from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import RemoteOutcome
from rlm.gateway.model.actions import (
    Action,
    Close,
    PrefetchHint,
    RemoteFetch,
    ResponseToClient,
    RewriteExchange,
    ToBroker,
    ToClient,
)
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.tiered_topics import TieredTopics
from rlm.gateway.session.session import Session
from rlm.gateway.session.session_state import SessionLimits, SessionParts
from rlm.wire.frames import FrameBuffer, request_frame, response_parts
from rlm.wire.schema import Api, Message, UnknownTags
from rsm.segment.ids import TopicIdPartition
from tests.log_dir_builder import ManualClock

TOPIC_ID = UUID(int=7)
TIERED = TopicIdPartition(topic_id=TOPIC_ID, topic="orders", partition=0)
GATEWAY = HostPort(host="gateway", port=19092)
_MAX_FRAME_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class FixedView:
    """Returns the same bounds for every partition that is not named."""

    facts_of: Mapping[TopicIdPartition, RemoteLogBounds] = field(default_factory=dict)

    def facts(self, partition: TopicIdPartition) -> RemoteLogBounds:
        return self.facts_of.get(partition, RemoteLogBounds())


class SessionWorld:
    """A session under test; it has requested `expected`, `reads` and `rewrites`."""

    def __init__(
        self,
        *,
        facts: Mapping[TopicIdPartition, RemoteLogBounds] | None = None,
        limits: SessionLimits | None = None,
        local_starts: LocalStarts | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.local_starts = LocalStarts() if local_starts is None else local_starts
        self.parts = SessionParts(
            context=lambda: _CONTEXT,
            view=FixedView(facts or {}),
            local_starts=self.local_starts,
            clock=self.clock,
            limits=limits or SessionLimits(),
        )
        self.session = Session(self.parts)
        self._broker_frames = FrameBuffer(max_frame_bytes=_MAX_FRAME_BYTES)
        self._client_frames = FrameBuffer(max_frame_bytes=_MAX_FRAME_BYTES)
        self.sent_to_client = bytearray()
        self.expected: list[PrefetchHint] = []
        self.reads: list[RemoteFetch] = []
        self.rewrites: list[RewriteExchange] = []
        self.closed: Close | None = None

    def client_sends(self, data: bytes, *, chunks: Sequence[int] = ()) -> None:
        """Pass on the client's bytes, cut at these positions."""
        self._hand_over(self.session.receive_from_client, data, chunks)

    def broker_sends(
        self, data: bytes, *, chunks: Sequence[int] = (), unread: bool = False
    ) -> None:
        """Pass on the broker's bytes, cut at these positions.

        With `unread`, bytes that may be spliced to the client are spliced.
        """
        self._hand_over(self._unread if unread else self.session.receive_from_broker, data, chunks)

    def store_answers(self, *outcomes: RemoteOutcome) -> None:
        """Pass on the result of the read."""
        self._carry_out(self.session.finish_fetch(outcomes))

    def goes_on(self) -> None:
        """Report that the client has received its responses."""
        self._carry_out(self.session.process_buffered())

    def rewritten(self, response: Message) -> None:
        """Pass on the result of the rewrite."""
        self._carry_out(self.session.finish_exchange(response))

    def at_broker(self) -> list[bytes]:
        """Return the requests that the broker got since the last call."""
        return list(_frames(self._broker_frames))

    def at_client(self) -> list[bytes]:
        """Return the answers that the client got since the last call."""
        return list(_frames(self._client_frames))

    def _hand_over(
        self, take: Callable[[memoryview], list[Action]], data: bytes, chunks: Sequence[int]
    ) -> None:
        bounds = [0, *sorted({each for each in chunks if 0 < each < len(data)}), len(data)]
        buffer = bytearray(max(len(data), 1))
        for start, end in pairwise(bounds):
            if self.closed is not None:
                return
            # The same memory each time, as in the gateway's loop.
            view = memoryview(buffer)[: end - start]
            view[:] = data[start:end]
            self._carry_out(take(view))

    def _unread(self, data: memoryview) -> list[Action]:
        count = min(self.session.passing_bytes, len(data))
        if not count:
            return self.session.receive_from_broker(data)
        self._to_client(data[:count])
        self._carry_out(self.session.skip_spliced(count))
        return self._unread(data[count:]) if count < len(data) and self.closed is None else []

    def _carry_out(self, actions: Iterable[Action]) -> None:
        self._carry_out_all(actions)
        if self.closed is None:
            self._carry_out_all(self.session.speculate())

    def _carry_out_all(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case ToBroker(data):
                    self._broker_frames.add(bytes(data))
                case ToClient(data):
                    self._to_client(data)
                case ResponseToClient():
                    for part in action.parts:
                        self._to_client(part)
                    action.release()
                case PrefetchHint():
                    self.expected.append(action)
                case RemoteFetch():
                    self.reads.append(action)
                case RewriteExchange():
                    self.rewrites.append(action)
                case Close():
                    self.closed = action

    def _to_client(self, data: bytes | memoryview) -> None:
        self.sent_to_client += data
        self._client_frames.add(bytes(data))


def request(
    api: Api[Any, Any],
    version: int,
    message: Message,
    correlation_id: int = 1,
    *,
    client_id: str | None = "client",
    header_tags: UnknownTags = (),
) -> bytes:
    """Return a request as a client sends it."""
    return request_frame(
        api,
        version,
        message,
        correlation_id=correlation_id,
        client_id=client_id,
        header_tags=header_tags,
    )


def response(
    api: Api[Any, Any],
    version: int,
    message: Message,
    correlation_id: int = 1,
    *,
    header_tags: UnknownTags = (),
) -> bytes:
    """Return a response as a broker sends it."""
    parts = response_parts(
        api, version, message, correlation_id=correlation_id, header_tags=header_tags
    )
    return b"".join(parts)


def _frames(buffer: FrameBuffer) -> Iterable[bytes]:
    while (frame := buffer.next_frame()) is not None:
        yield frame


_CONTEXT = GatewayContext(
    topology=GatewayTopology(live={1: GATEWAY}),
    topics=TieredTopics(id_by_name={"orders": TOPIC_ID}, name_by_id={TOPIC_ID: "orders"}),
    metadata=None,  # type: ignore[arg-type]  # what blocks is not run here
    timestamps=None,  # type: ignore[arg-type]  # the same
    query_settings=None,  # type: ignore[arg-type]  # the same
    new_id=lambda: UUID(int=1),
)
