"""Delays the next batch if most dead letters of a batch go back. This module does not import Spark.

Dead letters that wait or fail are written back to a topic without retention. The pause limits this
growth: at most once per PAUSE_MS, apart from batches with at least as many other outcomes. It also
separates the attempts of a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rsm.segment.clock import Clock
from spark_tools.repair.outcomes import RepairOutcome

PAUSE_MS = 600_000
_STEP_MS = 1_000


def pause_after(outcomes: Mapping[str, int], clock: Clock, is_stopped: Callable[[], bool]) -> None:
    """Return at once if most dead letters are done; else after PAUSE_MS.

    Returns within a second after `is_stopped`.
    """
    back = outcomes.get(RepairOutcome.WAITING, 0) + outcomes.get(RepairOutcome.FAILED, 0)
    if back <= sum(outcomes.values()) - back:
        return
    until_ms = clock.monotonic_ms() + PAUSE_MS
    while clock.monotonic_ms() < until_ms and not is_stopped():
        clock.sleep_ms(_STEP_MS)
