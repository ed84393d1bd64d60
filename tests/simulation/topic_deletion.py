"""The topic is deleted in the middle of a story: managers remove its stored data.

From then on nobody writes, leads or reads. Work that managers had begun may continue for a while.
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
"""The actions that are possible after the deletion of the topic."""


def delete_topic(stage: Stage) -> str:
    """Delete every partition at once from all brokers."""
    stage.world.delete_topic()
    return "the topic is deleted"
