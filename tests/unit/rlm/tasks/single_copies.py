"""Copies a rolled segment whatever is stored before it, which no cycle would do."""

from __future__ import annotations

from collections.abc import Callable

from rlm.tasks.copying.copier import Copier, CopyOrder
from tests.fakes.process import Process
from tests.fakes.world import TIP, World


def copy_only(
    world: World, process: Process, index: int, *, stopping: Callable[[], bool] = lambda: False
) -> None:
    """Copy the rolled segment of `TIP` at `index`. The process must lead `TIP`."""
    order = CopyOrder(
        lead=process.leadership.led()[0].lead,
        segment_id=world.new_id(),
        segment=process.ports.source.local_log(TIP).rolled[index],
        lineage=world.leader().checkpoint,
        timeout_ms=600_000,
        stopping=stopping,
        leads=lambda: True,
    )
    Copier(process.ports).copy(order)
