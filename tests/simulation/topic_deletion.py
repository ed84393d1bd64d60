"""The topic is deleted in the middle of a story: managers remove what is stored of it.

From then on nobody writes, leads or reads; what managers had begun may go on for a while.
"""

from __future__ import annotations

from tests.simulation.actions import (
    Action,
    Stage,
    compact_metadata,
    cycle,
    kill,
    land_late,
    land_late_write,
    lose_cache,
    pass_time,
    run_job,
    start,
    toggle_store,
    toggle_topic,
    work,
)

AFTERWARDS: frozenset[Action] = frozenset(
    (
        *(cycle, run_job, work, pass_time, kill, start),
        *(toggle_store, toggle_topic, compact_metadata, lose_cache),
        *(land_late, land_late_write),
    )
)
"""What can still happen when the topic is gone."""


def delete_topic(stage: Stage) -> str:
    """Brokers delete every partition at once."""
    stage.world.delete_topic()
    return "the topic is deleted"
