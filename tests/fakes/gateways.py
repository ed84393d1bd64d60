"""Gateways of a world, as the metadata shows them."""

from __future__ import annotations

from uuid import UUID

from rlmm.events.registration import AppliedPosition, ProcessRegistered, ProcessRole
from tests.fakes.world import World


def gateway_at(world: World, metadata_offset: int) -> None:
    """Register a gateway that has read the metadata topic up to there."""
    event = ProcessRegistered(
        event_id=world.new_id(),
        process_id=UUID(int=0x6A7E),
        role=ProcessRole.GATEWAY,
        broker_id=1,
        http_address="",
        heartbeat_interval_ms=5_000,
        version="0",
        gateway_address="gateway:9092",
        applied=(AppliedPosition(partition=0, offset=metadata_offset),),
    )
    assert world.metadata.publish(event).accepted
