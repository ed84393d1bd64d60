"""Finds the live gateways, and those that have not yet applied a metadata record. Pure.

A gateway whose cache lacks a segment cannot serve it. So a trim waits until every live gateway has
applied the records of the stored segments. Objects are deleted only after every live gateway has
applied the start of their deletion: otherwise, a gateway would report them as missing. A slow
gateway blocks both only while its registration is live; a dead gateway blocks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rlmm.events.registration import ProcessRegistered, ProcessRole, Registration
from rlmm.positions import MetadataPosition
from rlmm.registration import live_processes


def live_gateways(
    registrations: Iterable[Registration], broker_time_ms: int
) -> tuple[ProcessRegistered, ...]:
    """Return the gateways whose registrations are live."""
    return live_processes(registrations, ProcessRole.GATEWAY, broker_time_ms)


def gateway_behind(
    gateways: Iterable[ProcessRegistered], position: MetadataPosition | None
) -> Mapping[str, int | str] | None:
    """Describe the first gateway that has not applied the record at `position`; None if all have.

    Returns None if `position` is None: then there is no record to apply.
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
    """Return whether a gateway's last heartbeat shows that it applied the record at `position`."""
    return any(
        applied.partition == position.partition and applied.offset > position.offset
        for applied in gateway.applied
    )
