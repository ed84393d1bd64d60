from __future__ import annotations

from uuid import UUID

import pytest

from rlm.tasks.leadership.rivals import live_rivals
from rlmm.events.registration import ProcessRegistered, ProcessRole
from rlmm.spi import Registration

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
