"""Compaction of logs that unclean elections cut off: no superseded record takes effect again.

The logs come from seeds, because the wanted cases need a certain order of many events.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.events.event import Event
from rlmm.events.gaps import GapsRecorded
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.events.log_start import LogStartAdvanced, LogStartRequested
from rlmm.state.log_starts import LogStart
from rlmm.state.partition_state import PartitionState
from rlmm.topic.memory import MemoryLog
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import Writer
from tests.folding import LiveFold, append, folded, log_of
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    ORDERS,
    claim,
    gap,
    gaps,
    log_start,
    log_start_request,
    trim,
    writer,
)

_STORIES = 500
_LAST_EPOCH = 3


class Story:
    """A sequence of leaders of one partition, each of which may lack records.

    `superseded` has the numbers of the events that their owner may remove by now.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        # Each epoch continues the log of an earlier one, from an offset on.
        self._origins = [random.randint(0, epoch) for epoch in range(_LAST_EPOCH)]
        self._begins = [random.randint(1, 5) for _ in range(_LAST_EPOCH)]
        self._epoch = 0
        self.events: list[Event] = []
        self.superseded: set[int] = set()
        self._log = MemoryLog(ManualClock())
        self._live = LiveFold(self._log, MemoryStore())
        self._write(claim(writer(0)))

    def go_on(self) -> None:
        acts: list[Callable[[], None]] = [
            self._elect,
            self._claim,
            self._move_start,
            self._move_start,
            self._request,
            self._request,
            self._record_gaps,
            self._trim,
        ]
        self._random.choice(acts)()

    def state(self) -> PartitionState:
        return self._live.caught_up().partition_state(ORDERS)

    def state_without(self, removed: frozenset[int]) -> PartitionState:
        left = (each for number, each in enumerate(self.events) if number not in removed)
        return folded(log_of(*left)).partition_state(ORDERS)

    def removed(self) -> frozenset[int]:
        """Choose superseded records to remove: the owner may be killed, and the cleaner is slow."""
        share = self._random.choice([0.3, 0.7, 1.0])
        return frozenset(each for each in self.superseded if self._random.random() < share)

    def _elect(self) -> None:
        self._epoch = min(self._epoch + 1, _LAST_EPOCH)

    def _claim(self) -> None:
        """Claim as the present or a former leader, whose checkpoint may lack the newest epoch."""
        epoch = max(self._epoch - (self._random.random() < 0.2), 0)
        stored = {each.epoch for each in self.state().lineage.entries}
        is_known = epoch == 0 or epoch in stored or self._random.random() < 0.7
        lineage = self._lineage(epoch if is_known else self._origins[epoch - 1])
        self._write(claim(writer(epoch), lineage=lineage))

    def _move_start(self) -> None:
        by = self._owner()
        if self._random.random() < 0.15:
            by = writer(self._random.randint(0, _LAST_EPOCH))
        start = LogStart(self._random.randint(0, 6), by.leader_epoch)
        self._write(log_start(start.offset, by=by))
        state = self.state()
        if by != state.owner or start not in state.log_starts:
            return
        if state.log_starts == (start,):
            self._supersede(LogStartAdvanced)
        if not state.log_start_requests:
            self._supersede(LogStartRequested)

    def _request(self) -> None:
        epoch = self._random.choice([-1, self._epoch, self._random.randint(0, _LAST_EPOCH)])
        self._write(log_start_request(self._random.randint(0, 6), leader_epoch=epoch))

    def _record_gaps(self) -> None:
        start_offset = self._random.randint(0, 4)
        found = gap(start_offset, start_offset + self._random.randint(1, 3))
        self._write(gaps(found, by=self._owner()))
        self._supersede(GapsRecorded)

    def _trim(self) -> None:
        owner = self._owner()
        own = LogStart(self._random.randint(0, 6), owner.leader_epoch)
        lineage = self._lineage(owner.leader_epoch)
        self._write(trim(own.offset, by=owner, lineage=lineage))
        if self.state().trims == (own,):
            self._supersede(LocalLogTrimmed)

    def _write(self, event: Event) -> None:
        self.events.append(event)
        append(self._log, event)

    def _owner(self) -> Writer:
        owner = self.state().owner
        assert owner is not None
        return owner

    def _lineage(self, epoch: int) -> Lineage:
        """Return the lineage that a leader of this epoch knows, without what it has cut off."""
        return Lineage.of(*self._entries(epoch))

    def _entries(self, epoch: int) -> list[tuple[int, int]]:
        if epoch == 0:
            return [(0, 0)]
        begin = self._begins[epoch - 1]
        before = self._entries(self._origins[epoch - 1])
        return [*(each for each in before if each[1] < begin), (epoch, begin)]

    def _supersede(self, kind: type[Event]) -> None:
        before = enumerate(self.events[:-1])
        self.superseded |= {number for number, each in before if isinstance(each, kind)}


@pytest.mark.parametrize("first", range(0, 4 * _STORIES, _STORIES))
def test_state_when_superseded_records_are_gone_then_is_the_same(first: int) -> None:
    """R11: log starts, requests, gaps and trims, whichever of them compaction removed."""
    for seed in range(first, first + _STORIES):
        random = Random(seed)
        story = Story(random)
        for _ in range(random.randint(3, 9)):
            story.go_on()
        live = story.state()
        for removed in (story.removed() for _ in range(4)):
            assert story.state_without(removed) == live, f"seed {seed} without {sorted(removed)}"
