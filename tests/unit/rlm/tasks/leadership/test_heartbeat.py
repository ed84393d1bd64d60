"""What a process registers in its heartbeats, and which other processes serve its broker."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.tasks.leadership.heartbeat import Heartbeat, ProcessDescription, live_rivals
from rlmm.events.registration import (
    FileDefault,
    ProcessRegistered,
    ProcessRole,
    Registration,
    registrations,
)
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

    (found,) = registrations(process.metadata)
    assert found.process.file_defaults == DEFAULTS


OURS, THEIRS = UUID(int=1), UUID(int=2)


def registration(process_id: UUID, *, broker_id: int = 1, heartbeat_ms: int = 0) -> Registration:
    process = ProcessRegistered(
        event_id=UUID(int=9),
        process_id=process_id,
        role=ProcessRole.MANAGER,
        broker_id=broker_id,
        http_address="",
        heartbeat_interval_ms=1000,
        version="1",
    )
    return Registration(process=process, heartbeat_ms=heartbeat_ms)


@pytest.mark.parametrize(
    ("registered", "alive"),
    [
        (registration(OURS), False),
        (registration(THEIRS), True),
        (registration(THEIRS, broker_id=2), False),
        (registration(THEIRS, heartbeat_ms=-3000), False),
    ],
)
def test_rivals_when_registered_then_only_live_ones_of_the_same_broker(
    registered: Registration, *, alive: bool
) -> None:
    """Scenario 100."""
    found = live_rivals([registered], broker_id=1, process_id=OURS, broker_ms=0)
    assert bool(found) is alive
