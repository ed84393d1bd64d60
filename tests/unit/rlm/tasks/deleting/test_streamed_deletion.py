"""Streamed segments that an operator wants deleted are copied as segments first (PIP-76)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.tasks.integrity.damage_proof import DamageProof
from rlmm.events.offload_segment import offload_segments
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, TIP
from tests.unit.rlm.tasks.copying.test_streams import SEGMENTS, STREAMS
from tests.unit.rlm.tasks.streamed_world import FINISHED, StreamedWorld

ACTS = (
    "publish COPY_SEGMENT_STARTED",
    "write .log",
    "publish COPY_SEGMENT_FINISHED",
    "publish DELETE_SEGMENT_STARTED",
    "delete .meta",
    "publish DELETE_SEGMENT_FINISHED",
)


def performed(world: StreamedWorld, since: int) -> list[str]:
    acts = world.process.effects.performed[since:]
    return [name for name in acts if name.startswith("publish") and "SEGMENT" in name]


def test_deletion_when_requested_then_all_is_copied_before_the_first_is_deleted() -> None:
    world = StreamedWorld()
    since = len(world.process.effects.performed)

    accepted = world.delete_streamed(world.process)
    world.pass_cycles()

    published = performed(world, since)
    last_copy = max(n for n, name in enumerate(published) if name.endswith("COPY_SEGMENT_FINISHED"))
    first_deletion = published.index("publish DELETE_SEGMENT_STARTED")
    assert accepted
    assert last_copy < first_deletion
    assert (world.left(), world.broken()) == ([], [])
    assert {each.metadata.layout for each in world.records(FINISHED)} == {"raw"}
    assert offload_segments(world.metadata, TIP) != ()


def test_deletion_when_nobody_requests_it_then_streamed_segments_stay() -> None:
    world = StreamedWorld()

    world.pass_cycles()

    assert world.left() == world.streamed


def test_deletion_when_the_broker_has_not_all_records_then_the_only_copies_stay() -> None:
    world = StreamedWorld()
    world.set_policy(replace(SEGMENTS, local_retention_ms=KEEP_REMOTE.local_retention_ms))
    world.settle()
    local_start = world.leader().log_start_offset
    world.set_policy(SEGMENTS)
    world.delete_streamed(world.process)

    world.pass_cycles()

    kept = [each for each in world.streamed if each.metadata.offsets.start_offset < local_start]
    assert 0 < len(kept) < len(world.streamed)
    assert (world.left(), world.broken()) == (kept, [])


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", ACTS)
def test_deletion_when_the_process_dies_at_any_act_then_a_repeated_request_ends_it(
    act: str, moment: str
) -> None:
    world = StreamedWorld()
    effects = world.process.effects
    world.delete_streamed(world.process)
    (effects.after if moment == "after" else effects.before)(act, effects.crash)
    world.pass_cycles()
    has_died = not world.process.alive
    while_dead = world.broken()

    world.process = world.start()
    world.cycle()
    world.delete_streamed(world.process)
    world.pass_cycles(16)

    assert has_died
    assert [each for each in while_dead if "is left in" not in each] == []
    assert (world.left(), world.broken()) == ([], [])


def test_request_when_the_topic_is_streamed_again_then_it_ends() -> None:
    world = StreamedWorld()
    world.delete_streamed(world.process)
    world.set_policy(STREAMS)
    world.pass_cycles(2)
    world.set_policy(replace(SEGMENTS, copy_lag_ms=0))

    world.pass_cycles()

    assert world.left() == world.streamed


def test_request_when_the_process_does_not_lead_then_is_refused() -> None:
    world = StreamedWorld()

    assert not world.process.deletions.request(TIP.topic, 1)
    assert not world.process.deletions.request("payments", 0)


class WithLosses(DamageProof):
    """Removes every copy right before the last check."""

    world: StreamedWorld

    def require(self, action: object) -> None:
        for record in self.world.records(FINISHED):
            if record.metadata.layout == "raw" and self.world.process.alive:
                for stored in record.metadata.objects:
                    self.world.damaged_objects.add(stored.key)
                    self.world.objects.delete(stored.key)
        super().require(action)  # type: ignore[arg-type]  # as it is called


class LosingProcess(Process):
    proof: WithLosses

    def make_proof(self) -> DamageProof:
        self.proof = WithLosses(self.ports, self.stopping)
        return self.proof


def test_deletion_when_a_copy_is_damaged_at_the_last_moment_then_the_streamed_one_stays() -> None:
    world = StreamedWorld(process_type=LosingProcess)
    assert isinstance(world.process, LosingProcess)
    world.process.proof.world = world
    world.delete_streamed(world.process)

    world.pass_cycles(6)

    assert world.left() == world.streamed
