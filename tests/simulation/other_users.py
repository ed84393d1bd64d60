"""Actions of others on a tiered topic: operators, readers of objects, share groups, tools.

They have the form of those in tests.simulation.actions. The world records them, so that the
invariants can check the managers against them.
"""

from __future__ import annotations

from rlm.facts.share_group_start import ShareGroupStart
from rlmm.events.pause import PausableTask
from rsm.segment.ranges import OffsetRange
from tests.simulation.actions import PAUSES_MS, Action, Stage

_TASKS = tuple(PausableTask)


def pause(stage: Stage) -> str:
    """Pause some tasks as `rlm pause` does, or no task as `rlm resume` does."""
    tasks = frozenset(task for task in _TASKS if stage.random.random() < 0.3)
    stage.world.pause(tasks)
    return f"paused tasks: {sorted(task.name for task in tasks)}"


def take_lease(stage: Stage) -> str | None:
    """Take a lease, as a job does before it reads objects."""
    low = stage.world.state(stage.tip).first_readable_offset or 0
    high = stage.world.leader(stage.tip).end_offset
    if high <= low:
        return None
    start_offset = stage.random.randrange(low, high)
    end_offset = stage.random.randint(start_offset + 1, high)
    leased = OffsetRange(start_offset=start_offset, end_offset=end_offset)
    duration_ms = stage.random.choice(PAUSES_MS)
    stage.world.take_lease(stage.tip, leased, duration_ms)
    return f"{leased} is leased for {duration_ms} ms"


def read_in_share_group(stage: Stage) -> str | None:
    """Let a share group finish more of the committed records."""
    started = stage.world.share_groups.started.get(stage.tip)
    high = stage.world.leader(stage.tip).high_watermark
    if started is None or high <= started.offset:
        return None
    offset = stage.random.randint(started.offset + 1, high)
    stage.world.share_groups.started[stage.tip] = ShareGroupStart(
        group=started.group, offset=offset
    )
    return f"a share group comes to {offset}"


def take_records(stage: Stage) -> str | None:
    """Delete records at the broker itself, as a tool does without a gateway."""
    leader = stage.world.leader(stage.tip)
    low, high = leader.log_start_offset, leader.high_watermark
    if high <= low or stage.world.state(stage.tip).log_start_offset is None:
        return None
    offset = stage.random.randint(low + 1, high)
    stage.world.take_records(stage.tip, offset)
    return f"a tool deletes below {offset}"


OTHER_USERS: tuple[tuple[Action, float], ...] = (
    (pause, 0.5),
    (take_lease, 1),
    (read_in_share_group, 3),
    (take_records, 0.5),
)
"""Most stories have no other users, because each of these actions hides faults of the others."""
