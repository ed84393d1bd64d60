"""Gateways as the metadata shows them: which live, and which have yet to hear of a stored segment.

A gateway whose copy of the metadata lacks a segment cannot serve it. So local data goes only when
every live gateway has applied what says where it is stored; and objects go only when every one has
applied that their deletion has begun, or it would miss them where nothing is wrong. One that stays
behind is waited for no longer than its lease: a dead gateway holds no space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rlmm.events.processes import ProcessRegistered, ProcessRole
from rlmm.registration import live_processes
from rlmm.spi import MetadataPosition, Registration


def live_gateways(
    registrations: Iterable[Registration], broker_time_ms: int
) -> tuple[ProcessRegistered, ...]:
    """The gateways whose leases hold."""
    return live_processes(registrations, ProcessRole.GATEWAY, broker_time_ms)


def gateway_behind(
    gateways: Iterable[ProcessRegistered], position: MetadataPosition | None
) -> Mapping[str, int | str] | None:
    """The first gateway that has yet to apply the record at `position`, for people; None if none.

    `position` None is known to all.
    """
    if position is None:
        return None
    behind = next((each for each in gateways if not has_applied(each, position)), None)
    if behind is None:
        return None
    return {
        "gateway": behind.gateway_address,
        "metadata_partition": position.partition,
        "metadata_offset": position.offset,
    }


def has_applied(gateway: ProcessRegistered, position: MetadataPosition) -> bool:
    """Whether a gateway's last heartbeat says that it has applied the record at `position`."""
    return any(
        applied.partition == position.partition and applied.offset > position.offset
        for applied in gateway.applied
    )
