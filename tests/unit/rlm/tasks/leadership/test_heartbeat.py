"""What a process registers of itself in its heartbeats."""

from __future__ import annotations

from rlm.tasks.leadership.heartbeat import Heartbeat, ProcessDescription
from rlmm.events.registration import FileDefault, ProcessRole
from tests.unit.rlm.topics.tiering_world import World

DEFAULTS = (FileDefault(key="offload.mode", value="stream"), FileDefault(key="a", value=None))


def test_heartbeat_when_a_manager_has_defaults_of_topics_then_registers_them() -> None:
    world = World()
    process = world.process()
    description = ProcessDescription(
        process_id=world.new_id(),
        role=ProcessRole.MANAGER,
        broker_id=1,
        heartbeat_interval_ms=5_000,
        version="1",
        file_defaults=DEFAULTS,
    )

    Heartbeat(process.metadata, description, world.new_id).step()

    (found,) = process.metadata.registrations()
    assert found.process.file_defaults == DEFAULTS
