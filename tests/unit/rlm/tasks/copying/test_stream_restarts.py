"""The rollover time counts on across restarts and changes of the leader (PIP-76)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from rlm.policy.stream.permit import OPEN_BYTES
from rsm.segment.metadata import SegmentState
from tests.fakes.effects import ProcessCrashError
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.fakes.world import TIP, World
from tests.unit.rlm.tasks.copying.test_stream_pace import produce_parts
from tests.unit.rlm.tasks.copying.test_streams import STREAMS

ROLLOVER_MS = 60_000
LIFE_MS = ROLLOVER_MS * 9 // 10
LOOK_MS = 1_000
SLOW = replace(
    STREAMS, offload_segment_rollover_ms=ROLLOVER_MS, offload_segment_max_bytes=4 * OPEN_BYTES
)


class Producing:
    """A partition with new records all the time; `oldest_ms` is the longest wait of a record."""

    def __init__(self, *, brokers: int = 1) -> None:
        self.world = World(brokers=brokers, policy=SLOW)
        self.oldest_ms = 0
        self._produced: list[tuple[int, int]] = []

    def live(self, process: Process, duration_ms: int = LIFE_MS) -> None:
        """Let a process run for a while, from its first cycle on."""
        process.step()
        for _ in range(duration_ms // LOOK_MS):
            self.world.produce(1)
            now_ms = self.world.clock.monotonic_ms()
            self._produced.append((now_ms, self.world.leader().end_offset))
            process.watch.step()
            self._note_age(now_ms)
            self.world.clock.advance(LOOK_MS)

    def _note_age(self, now_ms: int) -> None:
        stored = max((end for _, end in self.world.stored()), default=0)
        self._produced = [each for each in self._produced if each[1] > stored]
        if self._produced:
            self.oldest_ms = max(self.oldest_ms, now_ms - self._produced[0][0])


def test_stream_when_restarted_before_each_rollover_then_records_are_stored_in_its_time() -> None:
    producing = Producing()
    producing.live(producing.world.start())

    for _ in range(6):
        producing.live(producing.world.restart())

    assert producing.oldest_ms <= ROLLOVER_MS + 5_000
    assert violations(producing.world) == []


def test_stream_when_the_lead_moves_before_each_rollover_then_stored_in_its_time() -> None:
    producing = Producing(brokers=2)
    producing.live(producing.world.start(1))

    for node_id in (2, 1, 2, 1):
        producing.world.elect(node_id, tip=TIP)
        producing.live(producing.world.restart(node_id))

    assert producing.oldest_ms <= ROLLOVER_MS + 5_000


def test_stream_when_it_dies_with_an_open_segment_then_the_next_one_counts_on() -> None:
    """The next process counts the rollover time from the records, not from its own start."""
    producing = Producing()
    world = producing.world
    process = world.start()
    producing.live(process, ROLLOVER_MS + 10 * LOOK_MS)
    process.effects.before("write .meta", process.effects.crash)
    with suppress(ProcessCrashError):
        producing.live(process, ROLLOVER_MS)
    (opened,) = world.records(SegmentState.COPY_SEGMENT_STARTED)

    producing.live(world.restart(), 2 * LOOK_MS)

    assert opened.metadata.is_open
    assert world.stored()[1][0] == opened.metadata.offsets.start_offset
    assert producing.oldest_ms <= ROLLOVER_MS + 5_000


def test_stream_when_restarted_after_a_stored_segment_then_the_rest_of_its_time_is_waited() -> None:
    """If the segment ended at each restart, its objects would be small."""
    producing = Producing()
    producing.live(producing.world.start(), ROLLOVER_MS + 10 * LOOK_MS)
    (first,) = producing.world.stored()
    following = producing.world.restart()

    producing.live(following, ROLLOVER_MS // 2)
    waiting = producing.world.stored()
    producing.live(following, ROLLOVER_MS // 2)

    assert waiting == [first]
    assert len(producing.world.stored()) == 2


def test_stream_when_a_large_file_is_stored_in_part_then_a_restart_waits_for_its_time() -> None:
    """A new process does not know the position in the file, most of whose bytes are stored."""
    producing = Producing()
    produce_parts(producing.world, 2)
    producing.live(producing.world.start(), ROLLOVER_MS + 10 * LOOK_MS)
    known = len(producing.world.records())
    following = producing.world.restart()

    producing.live(following, 10 * LOOK_MS)
    waiting = len(producing.world.records())
    produce_parts(producing.world, 1)
    producing.live(following, LOOK_MS)

    assert waiting == known
    assert len(producing.world.records()) == known + 1


@pytest.mark.parametrize("is_restarted", [False, True])
def test_stream_when_no_segment_shows_the_age_then_a_restart_stores_at_once(
    *, is_restarted: bool
) -> None:
    """Nothing is stored yet; the earlier process may have waited for almost a rollover time."""
    producing = Producing()
    process = producing.world.start()
    producing.live(process, LOOK_MS)

    producing.live(producing.world.restart() if is_restarted else process, LOOK_MS)

    assert bool(producing.world.stored()) is is_restarted
