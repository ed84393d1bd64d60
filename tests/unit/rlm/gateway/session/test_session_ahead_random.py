"""Readers of stored data, while the broker answers at random moments.

Whatever the session requests speculatively, each request gets its own response, in order. A reader
that lost its right to read gets nothing later than the broker's authorization allows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rlm.gateway.session.session_state import SessionLimits
from rlm.gateway.session.speculative_fetch import MAX_AGE_MS
from rlm.wire.api.fetch import FETCH, PartitionData
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA, MetadataRequest, MetadataResponse
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_request, read_response
from tests.unit.rlm.gateway.fetch.fetch_messages import (
    TRIMMED,
    answer_of,
    bytes_of,
    ends_of,
    fetch_of,
    local_row,
    out_of_range_row,
    slice_of,
)
from tests.unit.rlm.gateway.session_world import TIERED, SessionWorld, request, response

_VERSION = 16
_STEPS = st.lists(
    st.sampled_from(
        [
            *("reads on", "reads on", "reads on", "seeks", "asks", "is refused"),
            *("broker", "broker", "store", "waits"),
        ]
    ),
    max_size=60,
)
_REFUSED = -1
_LOCAL_START = 100  # as in TRIMMED and in `ends_of`


class _Reader:
    """One client, its broker and the store; `asked` and `cached` by correlation id, in order."""

    def __init__(self, limits: SessionLimits | None = None) -> None:
        self.world = SessionWorld(facts={TIERED: TRIMMED}, limits=limits)
        self.is_forbidden = False
        self.asked: list[tuple[int, int | None]] = []
        self.cached: list[tuple[int, bytes | None]] = []
        self._at_broker: deque[bytes] = deque()
        self._next_offset = 0

    def fetches(self, offset: int | None = None) -> None:
        """Fetch from the end of the last response, unless another offset is given."""
        offset = self._next_offset if offset is None else offset
        number = len(self.asked)
        self.asked.append((number, offset))
        self.world.client_sends(request(FETCH, _VERSION, fetch_of(_VERSION, offset), number))

    def asks_something_else(self) -> None:
        number = len(self.asked)
        self.asked.append((number, None))
        self.world.client_sends(request(METADATA, 12, MetadataRequest(topics=()), number))

    def is_refused(self) -> None:
        """Send a Fetch with a session, which the gateway refuses without asking the broker."""
        number = len(self.asked)
        self.asked.append((number, _REFUSED))
        fetch = replace(fetch_of(_VERSION, 0), session_id=7, session_epoch=1)
        self.world.client_sends(request(FETCH, _VERSION, fetch, number))
        self._take_answers()

    def broker_answers(self) -> None:
        """Answer the oldest request of the broker."""
        self._at_broker.extend(self.world.at_broker())
        if not self._at_broker:
            return
        frame = self._at_broker.popleft()
        key = int.from_bytes(frame[:2], "big")
        number = int.from_bytes(frame[4:8], "big", signed=True)
        if key == METADATA.key:
            answer = response(METADATA, 12, MetadataResponse(), number)
        elif key == LIST_OFFSETS.key:
            answer = ends_of(_LOCAL_START, number)
        else:
            (topic,) = read_request(FETCH, _VERSION, frame)[1].topics
            row = out_of_range_row(0)
            if self.is_forbidden:
                row = PartitionData(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif topic.partitions[0].fetch_offset >= _LOCAL_START:
                row = local_row(0, b"local")
            answer = response(FETCH, _VERSION, answer_of(_VERSION, row), number)
        self.world.broker_sends(answer)
        self._take_answers()

    def store_answers(self) -> None:
        while self.world.reads:
            (read,) = self.world.reads.pop().reads
            self.world.store_answers(slice_of(read.offset, read.offset + 10))
        self._take_answers()

    def ends(self) -> None:
        """Deliver all responses in flight."""
        for _ in range(10 * len(self.asked) + 10):
            self.broker_answers()
            self.store_answers()

    def _take_answers(self) -> None:
        for frame in self.world.at_client():
            number = int.from_bytes(frame[:4], "big")
            records = None
            if self.asked[number][1] not in (None, _REFUSED):
                (row,) = read_response(FETCH, _VERSION, frame)[1].responses[0].partitions
                records = bytes_of(row)
            self.cached.append((number, records))
            if records and records != b"local":
                self._next_offset = int(records.split(b"-")[1])


@given(steps=_STEPS, data=st.data())
def test_reader_when_it_reads_on_or_not_then_each_request_has_its_own_answer(
    steps: list[str], data: st.DataObject
) -> None:
    reader = _Reader()
    for step in steps:
        match step:
            case "reads on":
                reader.fetches()
            case "seeks":
                reader.fetches(data.draw(st.integers(0, 12)) * 10)
            case "asks":
                reader.asks_something_else()
            case "is refused":
                reader.is_refused()
            case "broker":
                reader.broker_answers()
            case "store":
                reader.store_answers()
            case _:
                reader.world.clock.now_ms += data.draw(st.sampled_from([1, 10, MAX_AGE_MS, 2_000]))
    reader.ends()

    assert reader.world.closed is None
    assert [number for number, _ in reader.cached] == [number for number, _ in reader.asked]
    for (_, offset), (_, records) in zip(reader.asked, reader.cached, strict=True):
        assert records == _expected_records(offset)


@given(
    age_ms=st.sampled_from([0, 10, MAX_AGE_MS]),
    cycles_ms=st.lists(st.integers(0, MAX_AGE_MS), min_size=1, max_size=8),
    answered_count=st.integers(0, 6),
    waits_ms=st.integers(0, 3 * MAX_AGE_MS),
)
def test_reader_when_it_is_forbidden_to_read_then_it_gets_nothing_that_was_not_allowed_lately(
    age_ms: int, cycles_ms: list[int], answered_count: int, waits_ms: int
) -> None:
    reader = _Reader(SessionLimits(cached_response_max_age_ms=age_ms))
    for cycle_ms in cycles_ms:
        reader.world.clock.now_ms += cycle_ms
        reader.fetches()
        reader.ends()
    for _ in range(answered_count):
        reader.broker_answers()

    reader.is_forbidden = True
    before_count = len(reader.cached)
    reader.world.clock.now_ms += waits_ms
    for _ in range(3):
        reader.fetches()
        reader.ends()

    given_after = [records for _, records in reader.cached[before_count:] if records]
    on_its_way_count = 1 if waits_ms <= MAX_AGE_MS else 0
    assert len(given_after) <= (3 if waits_ms <= age_ms else on_its_way_count)


def _expected_records(offset: int | None) -> bytes | None:
    if offset is None or offset == _REFUSED:
        return None
    return b"local" if offset >= _LOCAL_START else f"{offset}-{offset + 10}".encode()
