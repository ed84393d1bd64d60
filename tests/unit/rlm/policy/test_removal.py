"""Who removes a deleted topic."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from rlm.policy.removal import removed_by
from rlmm.events import ProcessRegistered, ProcessRole
from rlmm.spi import Registration

HEARTBEAT_MS = 1_000


def manager(broker_id: int, heartbeat_ms: int = 0) -> Registration:
    process = ProcessRegistered(
        event_id=UUID(int=broker_id),
        process_id=UUID(int=broker_id),
        role=ProcessRole.MANAGER,
        broker_id=broker_id,
        http_address="",
        heartbeat_interval_ms=HEARTBEAT_MS,
        version="0",
    )
    return Registration(process=process, heartbeat_ms=heartbeat_ms)


def removers(own_id: int, registrations: Iterable[Registration], broker_ms: int = 0) -> list[int]:
    known = tuple(registrations)
    return [
        removed_by(UUID(int=number), known, own_id=own_id, broker_ms=broker_ms)
        for number in range(6)
    ]


def test_remover_when_all_live_then_topics_are_shared_out_alike_everywhere() -> None:
    """Scenario 76: each manager comes to the same answer."""
    registrations = [manager(each) for each in (3, 1, 2)]

    assert removers(1, registrations) == removers(2, registrations) == [1, 2, 3, 1, 2, 3]


def test_remover_when_one_is_gone_then_the_others_take_over() -> None:
    registrations = [manager(1, heartbeat_ms=9_000), manager(2), manager(3, heartbeat_ms=9_000)]

    assert set(removers(1, registrations, broker_ms=9_500)) == {1, 3}


def test_remover_when_none_is_registered_yet_then_itself() -> None:
    assert removers(4, []) == [4] * 6
