"""The invariants of a simulated world: after every action, and at rest."""

from __future__ import annotations

from collections.abc import Iterator

from rlmm.events.policy import topic_policy
from rsm.layout.keys import ObjectKeys
from rsm.segment.coverage import covered_end, stored_ranges
from rsm.segment.epochs import stitch
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode
from tests.fakes.invariants import leftovers, violations
from tests.simulation.reader_view import ReaderView
from tests.simulation.world import SimulatedWorld


class WorldChecks:
    """Checks one world; skips checks whose inputs cannot have changed since the last time."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._reader = ReaderView(world)
        self._checked: object = None

    def broken(self) -> list[str]:
        """Return the invariants that do not hold now."""
        moment = self._world.moment()
        if moment == self._checked and not self._world.audit.violations:
            return []
        self._checked = moment
        if self._world.deleted_topics():
            return violations(self._world)
        found = [*violations(self._world), *self._world.hidden(), *self._taken_from_gateway()]
        if (difference := self._reader.difference()) is not None:
            found.append(difference)
        return found

    def _taken_from_gateway(self) -> Iterator[str]:
        """Return the deleted objects of segments that a live gateway still takes for stored."""
        world = self._world
        if world.clock.wall_ms() < world.gateway_until_ms:
            for key in world.gateway_reads - world.damaged_objects:
                if not world.objects.exists(key):
                    yield f"{key} is deleted, a gateway does not know it"

    def unfinished(self) -> list[str]:
        """Return what is left to do although nothing changes any more."""
        missing = (each for tip in self._world.defined_tips() for each in self._not_stored(tip))
        left = [*leftovers(self._world), *self._unfinished_uploads()]
        return [*left, *self._world.unrecorded(), *missing]

    def _unfinished_uploads(self) -> Iterator[str]:
        """Return the uploads that nobody has ended, except those of dead letters."""
        for name in self._world.unfinished_uploads():
            key = ObjectKeys().parse(name)
            record = None if key is None else self._world.metadata.segment(key.segment_id)
            if record is None or not record.is_dead_lettered:
                yield f"an upload of {name} is left"

    def _not_stored(self, tip: TopicIdPartition) -> Iterator[str]:
        """Return the offsets of the leader's log that should be stored by now and are not."""
        leader = self._world.leader(tip)
        rolled = [file for file in leader.on_disk[:-1] if file.end_offset <= leader.high_watermark]
        wanted_offset = leader.last_stable_offset if self._is_streamed(tip) else 0
        wanted_offset = max(wanted_offset, rolled[-1].end_offset if rolled else 0)
        lineage = stitch(self._world.state(tip).lineage, leader.checkpoint).lineage
        finished = self._world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
        stored = stored_ranges(lineage, (record.metadata for record in finished))
        stored_offset = covered_end(stored, leader.log_start_offset)
        if stored_offset < wanted_offset:
            yield f"{tip}: stored without a hole up to {stored_offset}, not to {wanted_offset}"

    def _is_streamed(self, tip: TopicIdPartition) -> bool:
        policy = topic_policy(self._world.metadata, tip.topic_id)
        return policy is not None and policy.offload_mode is OffloadMode.STREAM
