"""The last check before a damaged segment is deleted."""

from __future__ import annotations

from threading import Event

import pytest

from rlm.operator.pause import Pausing
from rlm.policy.plan import DeleteSegment
from rlm.tasks.integrity.damage_proof import DamageProof
from rlmm.events.pause import PausableTask
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.errors import FencedError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from tests.unit.rlm.tasks.damaged_world import KEEP_LOCAL, DamagedWorld


class RepairedWorld(DamagedWorld):
    """The second segment is damaged and was copied again; deletions are paused."""

    def __init__(self, kind: AnomalyKind = AnomalyKind.MISSING) -> None:
        super().__init__(is_local=True)
        Pausing(self.metadata, self.new_id).pause(KEEP_LOCAL, {PausableTask.DELETE})
        self.content = self.content_of(1)
        if kind is AnomalyKind.MISSING:
            self.lose(1)
        else:
            self.flip_bit(1)
        self.pass_cycles()

    @property
    def copy(self) -> RemoteLogSegmentMetadata:
        """Return the segment that replaces the damaged one."""
        (found,) = [each for each in self.finished() if each not in self.copied]
        return found

    def require(self, *, is_damaged: bool = True, is_replaced: bool = True) -> None:
        record = self.metadata.segment(self.copied[1].segment_id)
        assert record is not None
        action = DeleteSegment(
            record=record,
            reason="a test",
            is_damaged=is_damaged,
            replaced_by=(self.copy.segment_id,) if is_replaced else (),
        )
        DamageProof(self.process.ports, Event()).require(action)


@pytest.mark.parametrize("kind", [AnomalyKind.MISSING, AnomalyKind.CORRUPT])
def test_proof_when_the_copy_is_whole_then_the_damaged_segment_may_go(kind: AnomalyKind) -> None:
    RepairedWorld(kind).require()


def test_proof_when_the_object_was_restored_then_nothing_is_deleted() -> None:
    world = RepairedWorld()
    world.give_back(1, world.content)

    with pytest.raises(FencedError, match="whole again"):
        world.require()


def test_proof_when_the_copy_was_damaged_since_then_nothing_is_deleted() -> None:
    world = RepairedWorld()
    world.objects.delete(world.copy.objects[0].key)

    with pytest.raises(FencedError, match="its replacement is damaged"):
        world.require()


def test_proof_when_a_segment_is_deleted_for_another_reason_then_nothing_is_asked() -> None:
    world = RepairedWorld()
    world.objects.delete(world.copy.objects[0].key)

    world.require(is_damaged=False, is_replaced=False)


def test_proof_when_a_whole_segment_is_replaced_then_only_the_replacement_is_checked() -> None:
    world = RepairedWorld()
    world.give_back(1, world.content)
    world.require(is_damaged=False)
    world.objects.delete(world.copy.objects[0].key)

    with pytest.raises(FencedError, match="its replacement is damaged"):
        world.require(is_damaged=False)
