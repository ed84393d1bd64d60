"""If the broker does not respond for a while, the open segment keeps what it has."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from rlmm.events.offload_segment import offload_segments
from rlmm.state.offload_segments import OffloadSegmentStatus
from rsm.segment.errors import CorruptError, FencedError, RetriableError, TieredStorageError
from tests.fakes.invariants import violations
from tests.fakes.world import TIP, World
from tests.unit.rlm.tasks.copying.test_stream_pace import STREAMS, produce_parts

_ROLLOVER_MS = 20_000
_ATTEMPT_MS = 600_000
_NO_ANSWER = RetriableError("connection reset by the broker")
_FIRST_LOOK, _LAST_LOOK = 2, 7  # of an open segment; two requests for offsets precede them


class _Streaming:
    """A stream that is opened by its size, and asks for the log's end until its rollover time."""

    def __init__(self) -> None:
        self.world = World(policy=replace(STREAMS, offload_segment_rollover_ms=_ROLLOVER_MS))
        self.process = self.world.start()
        self.looks_ms: list[int] = []
        produce_parts(self.world, 1)
        self.world.cycle()

    def stream(self, first: int, count: int, error: TieredStorageError = _NO_ANSWER) -> None:
        """Stream one segment; `count` of its looks fail. A record arrives before each look."""

        def look() -> None:
            number = len(self.looks_ms)
            self.looks_ms.append(self.world.clock.monotonic_ms())
            self.world.produce(1)
            if first <= number < first + count:
                raise error

        for _ in range(1_000):
            self.process.effects.before("offsets", look)
        self.process.watch.step()

    @property
    def statuses(self) -> list[OffloadSegmentStatus]:
        return [each.status for each in offload_segments(self.world.metadata, TIP)]


@pytest.mark.parametrize("first", [_FIRST_LOOK, 4, _LAST_LOOK])
def test_stream_when_the_broker_does_not_answer_once_then_the_segment_has_all(first: int) -> None:
    streaming = _Streaming()

    streaming.stream(first, 1)

    assert [start for start, _ in streaming.world.stored()] == [0]
    assert streaming.statuses == [OffloadSegmentStatus.OFFLOADED]
    assert violations(streaming.world) == []


def test_stream_when_the_broker_does_not_answer_for_long_then_stored_at_last() -> None:
    """The objects are complete in time; only the record of the end waits."""
    streaming = _Streaming()

    streaming.stream(_FIRST_LOOK, 40)

    waited_ms = streaming.looks_ms[_FIRST_LOOK + 40] - streaming.looks_ms[_FIRST_LOOK]
    assert waited_ms > 2 * _ROLLOVER_MS
    assert OffloadSegmentStatus.FAILED not in streaming.statuses
    assert streaming.world.stored()[0][0] == 0


def test_stream_when_the_broker_never_answers_then_fails_at_its_time_limit() -> None:
    streaming = _Streaming()
    started_ms = streaming.world.clock.monotonic_ms()

    streaming.stream(_FIRST_LOOK, 1_000)

    lasted_ms = streaming.world.clock.monotonic_ms() - started_ms
    pauses_ms = [later - now for now, later in pairwise(streaming.looks_ms[_FIRST_LOOK:])]
    assert streaming.statuses == [OffloadSegmentStatus.FAILED]
    assert 0 <= lasted_ms - (_ROLLOVER_MS + _ATTEMPT_MS) <= 1_000
    assert len([each for each in pauses_ms if each < _ROLLOVER_MS // 5]) <= 2


@pytest.mark.parametrize("error", [FencedError("another broker leads"), CorruptError("a bad log")])
def test_stream_when_the_answer_forbids_it_then_the_segment_fails_at_once(
    error: TieredStorageError,
) -> None:
    streaming = _Streaming()

    streaming.stream(_FIRST_LOOK + 1, 1, error)

    assert streaming.statuses[0] is OffloadSegmentStatus.FAILED
    assert streaming.world.stored() == []
