"""Puts the next batch off where nearly all letters only went round. Must not know Spark.

Letters that wait or failed go back into a topic that is kept for ever. So that is no more of them
than of others that something became of, or those that go back, once in PAUSE_MS. By that a letter's
attempts are as far apart, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rsm.segment.clock import Clock
from spark_tools.repair.outcomes import FAILED, WAITING

PAUSE_MS = 600_000
_STEP_MS = 1_000


def pause_after(outcomes: Mapping[str, int], clock: Clock, is_stopped: Callable[[], bool]) -> None:
    """Return at once after a batch of which most came to something; else PAUSE_MS later.

    Within a second once `is_stopped`.
    """
    back = outcomes.get(WAITING, 0) + outcomes.get(FAILED, 0)
    if back <= sum(outcomes.values()) - back:
        return
    until_ms = clock.monotonic_ms() + PAUSE_MS
    while clock.monotonic_ms() < until_ms and not is_stopped():
        clock.sleep_ms(_STEP_MS)
