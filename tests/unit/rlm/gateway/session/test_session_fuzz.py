"""A session keeps its promises, whatever a client or a broker sends, in any pieces.

Both sides send messages of all APIs, decoded and opaque, in every version. Clients send much at
once; brokers answer in order, and late. The second test also changes, removes and adds bytes of
either stream. `make fuzz` runs many more examples.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import (
    GapBelow,
    LogDivergence,
    ReadPending,
    ReadRefused,
    ReadThrottled,
    RemoteOutcome,
)
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.rewriting.rewrite_table import REWRITES
from rlm.gateway.session.session_state import SessionLimits
from rlm.wire.api.fetch import FETCH
from rlm.wire.api.metadata import METADATA
from rlm.wire.api.produce import PRODUCE
from rlm.wire.error_codes import ErrorCode
from rlm.wire.schema import Api, UnknownTags
from tests.example_counts import examples
from tests.unit.rlm.gateway.session_world import TIERED, TOPIC_ID, SessionWorld, request, response
from tests.unit.rlm.wire.message_strategies import messages

_APIS: dict[int, Api[Any, Any]] = {
    FETCH.key: FETCH,
    **{key: rewrite.api for key, rewrite in REWRITES.items()},
}
_OPAQUE_KEY, _OPAQUE_VERSION = 12, 3  # Heartbeat
_FLEXIBLE_REQUEST_HEADER = 2
_HEADER_TAGS: tuple[UnknownTags, ...] = ((), ((100, b"new"),))
_LIMITS = SessionLimits(
    request_bytes=20_000, gathered_request_bytes=10_000, gathered_answer_bytes=10_000
)
# The session may keep one buffer of each side, and the part of a frame before it.
_PIECE_BYTES = 4_000
_HELD_BYTES = _LIMITS.gathered_request_bytes + _LIMITS.gathered_answer_bytes + 8 * _PIECE_BYTES

_NAMES = st.sampled_from(["orders", "other"])
_SPECIAL: dict[str, st.SearchStrategy[object]] = {
    "acks": st.sampled_from([0, 1, -1]),
    "error_code": st.sampled_from([0, 0, 1, 6, 35, 56]),
    "fetch_offset": st.integers(0, 300),
    "last_fetched_epoch": st.just(-1),
    "max_bytes": st.sampled_from([0, 1, 500, 1 << 20]),
    "name": _NAMES,
    "partition": st.integers(0, 2),
    "partition_index": st.integers(0, 2),
    "replica_id": st.just(-1),
    "session_epoch": st.sampled_from([-1, 0]),
    "session_id": st.just(0),
    "timestamp": st.integers(-6, 3),
    "topic": _NAMES,
    "topic_id": st.sampled_from([TOPIC_ID, UUID(int=9)]),
}
_OUTCOMES: st.SearchStrategy[RemoteOutcome] = st.sampled_from(
    [
        ReadPending(),
        ReadThrottled(),
        ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR),
        ReadRefused(ErrorCode.OFFSET_OUT_OF_RANGE),
        LogDivergence(epoch=1, end_offset=50),
        GapBelow(100),
    ]
)


@dataclass(frozen=True, slots=True)
class _Head:
    api_key: int
    version: int
    correlation_id: int


class _Fuzz:
    """One connection; `waiting` are the requests that the broker has and has not answered."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.world = SessionWorld(
            facts={TIERED: RemoteLogBounds(first_stored_offset=0, trimmed_offset=100)},
            limits=_LIMITS,
        )
        self.waiting: deque[_Head] = deque()
        self.owed: list[int] = []
        self.answered: list[int] = []

    @property
    def is_open(self) -> bool:
        return self.world.closed is None

    def client_sends(self, correlation_id: int) -> None:
        """Send one request of any kind, and record whether it has a response."""
        key = self.data.draw(st.sampled_from([_OPAQUE_KEY, *_APIS]))
        if key == _OPAQUE_KEY:
            sent = struct.pack(">hhih", key, _OPAQUE_VERSION, correlation_id, -1)
            self.owed.append(correlation_id)
            self._give(self.world.client_sends, struct.pack(">i", len(sent)) + sent)
            return
        api = _APIS[key]
        version = self._version(api)
        message = self._message(api, version, api.request)
        if key != PRODUCE.key or message.acks != 0:
            self.owed.append(correlation_id)
        tags = self._tags(api.request_header_version(version) >= _FLEXIBLE_REQUEST_HEADER)
        sent = request(api, version, message, correlation_id, header_tags=tags)
        self._give(self.world.client_sends, sent)

    def broker_takes(self) -> None:
        for frame in self.world.at_broker():
            self.waiting.append(_Head(*struct.unpack_from(">hhi", frame)))

    def broker_answers(self) -> None:
        """Answer the oldest request that has a response."""
        if not self.waiting:
            return
        head = self.waiting.popleft()
        api = _APIS.get(head.api_key, METADATA)
        if head.api_key == PRODUCE.key and head.correlation_id not in self.owed:
            return
        if head.api_key == _OPAQUE_KEY:
            body = self.data.draw(st.binary(max_size=50))
            answer = struct.pack(">ii", 4 + len(body), head.correlation_id) + body
        else:
            message = self._message(api, head.version, api.response)
            tags = self._tags(api.response_header_version(head.version) > 0)
            answer = response(api, head.version, message, head.correlation_id, header_tags=tags)
        self._give(self.world.broker_sends, answer)

    def work_is_done(self) -> None:
        """Finish the work that the session waits for."""
        world = self.world
        if self.is_open and world.reads:
            wanted = world.reads.pop()
            world.store_answers(*(self.data.draw(_OUTCOMES) for _ in wanted.reads))
        elif self.is_open and world.rewrites:
            world.rewritten(world.rewrites.pop().exchange.response)

    def client_takes(self) -> None:
        for frame in self.world.at_client():
            self.answered.append(int.from_bytes(frame[:4], "big", signed=True))

    def check(self) -> None:
        """Check the invariants that hold after every step."""
        session = self.world.session
        buffered = (
            session._requests.stream.buffered_bytes + session._responses.stream.buffered_bytes
        )
        assert buffered <= _HELD_BYTES
        assert self.answered == self.owed[: len(self.answered)]

    def _version(self, api: Api[Any, Any]) -> int:
        return self.data.draw(st.integers(api.versions.first, api.versions.last))

    def _message(self, api: Api[Any, Any], version: int, kind: Any) -> Any:
        flexible = version in api.flexible
        return self.data.draw(messages(kind, version, flexible=flexible, special=_SPECIAL))

    def _tags(self, is_flexible: bool) -> UnknownTags:
        return self.data.draw(st.sampled_from(_HEADER_TAGS)) if is_flexible else ()

    def _give(self, give: Any, sent: bytes) -> None:
        chunks = self.data.draw(st.lists(st.integers(1, max(len(sent), 1)), max_size=3))
        give(sent, chunks=chunks)


@settings(max_examples=examples(1 / 2))
@given(data=st.data())
def test_session_when_both_sides_keep_to_the_protocol_then_every_request_is_answered_in_order(
    data: st.DataObject,
) -> None:
    fuzz = _Fuzz(data)
    for correlation_id in range(data.draw(st.integers(1, 8))):
        if fuzz.is_open:
            fuzz.client_sends(correlation_id)
            _go_on(fuzz, rounds=data.draw(st.integers(0, 2)))
    _go_on(fuzz, rounds=40)
    assert fuzz.world.closed is None
    assert fuzz.answered == fuzz.owed
    assert fuzz.world.session.is_idle
    assert fuzz.world.session.reads_client


@settings(max_examples=examples(1 / 2))
@given(data=st.data())
def test_session_when_streams_are_damaged_then_it_ends_with_a_reason_or_continues(
    data: st.DataObject,
) -> None:
    fuzz = _Fuzz(data)
    fuzz._give = _damaging(fuzz)  # type: ignore[method-assign]  # the only difference
    for correlation_id in range(data.draw(st.integers(1, 6))):
        if fuzz.is_open:
            fuzz.client_sends(correlation_id)
            _go_on(fuzz, rounds=data.draw(st.integers(0, 3)), is_damaged=True)
    closed = fuzz.world.closed
    assert closed is None or closed.reason is not DisconnectCause.INTERNAL_ERROR


def _go_on(fuzz: _Fuzz, *, rounds: int, is_damaged: bool = False) -> None:
    """Let both sides act `rounds` times: the broker answers, and the client receives."""
    for _ in range(rounds):
        if not fuzz.is_open:
            return
        fuzz.broker_takes()
        fuzz.broker_answers()
        fuzz.work_is_done()
        if not is_damaged:
            fuzz.client_takes()
            fuzz.check()


def _damaging(fuzz: _Fuzz) -> Any:
    def give(give: Any, sent: bytes) -> None:
        data = fuzz.data
        damaged = bytearray(sent)
        for _ in range(data.draw(st.integers(0, 3))):
            position = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
            match data.draw(st.sampled_from(["flip", "cut", "add"])):
                case "flip":
                    damaged[position : position + 1] = data.draw(st.binary(min_size=1, max_size=1))
                case "cut":
                    del damaged[position : position + data.draw(st.integers(1, 9))]
                case _:
                    damaged[position:position] = data.draw(st.binary(max_size=9))
        give(bytes(damaged), chunks=data.draw(st.lists(st.integers(1, 500), max_size=3)))

    return give
