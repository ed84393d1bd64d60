"""The invariants of a simulated world: after every step, and when everything has come to rest."""

from __future__ import annotations

from collections.abc import Iterator

from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from tests.simulation.reader_view import ReaderView
from tests.simulation.world import SimulatedWorld
from tests.twins.invariants import leftovers, violations


class WorldChecks:
    """Checks one world. What cannot have changed since the last time is not checked again."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._reader = ReaderView(world)
        self._checked: object = None

    def broken(self) -> list[str]:
        """The invariants that do not hold now."""
        moment = self._world.moment()
        if moment == self._checked and not self._world.audit.violations:
            return []
        self._checked = moment
        if self._world.deleted_topics():
            return violations(self._world)
        if self._world.has_conflict():
            return []
        found = [*violations(self._world), *self._world.hidden()]
        if (difference := self._reader.difference()) is not None:
            found.append(difference)
        return found

    def unfinished(self) -> list[str]:
        """What is left to do although nothing changes any more."""
        if self._world.has_conflict():
            return []
        behind = (each for tip in self._world.tips for each in self._not_stored(tip))
        return [*leftovers(self._world), *self._world.unrecorded(), *behind]

    def _not_stored(self, tip: TopicIdPartition) -> Iterator[str]:
        """What should be stored by now and is not."""
        leader = self._world.leader(tip)
        rolled = [file for file in leader.on_disk[:-1] if file.end_offset <= leader.high_watermark]
        finished = self._world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
        end_offset = max((r.metadata.offsets.end_offset for r in finished), default=0)
        if rolled and end_offset < rolled[-1].end_offset:
            yield f"{tip}: rolled up to {rolled[-1].end_offset}, stored up to {end_offset}"
