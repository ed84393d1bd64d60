"""Finds the registrations of other managers that serve the same broker by mistake. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from rlmm.events.registration import ProcessRole
from rlmm.registration import is_live
from rlmm.spi import Registration


def live_rivals(
    registrations: Iterable[Registration], *, broker_id: int, process_id: UUID, broker_ms: int
) -> tuple[Registration, ...]:
    """Return live managers of this broker other than `process_id`.

    The brokers' clock decides, so that a replayed registration does not revive a dead process.
    """
    return tuple(
        each
        for each in registrations
        if each.process.role is ProcessRole.MANAGER
        and each.process.broker_id == broker_id
        and each.process.process_id != process_id
        and is_live(each, broker_ms)
    )
