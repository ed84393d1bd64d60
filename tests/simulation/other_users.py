"""What others do to a tiered topic meanwhile: operators, readers of objects, share groups, tools.

Each action is as those of tests.simulation.actions. What they make known to the world is what the
invariants hold the managers to.
"""

from __future__ import annotations

from rlm.broker.groups.share_groups import ShareGroupStart
from rlmm.events.pause import PausableTask
from rsm.segment.ranges import OffsetRange
from tests.simulation.actions import PAUSES_MS, Action, Stage

_TASKS = tuple(PausableTask)


def pause(stage: Stage) -> str:
    """`rlm pause` of some tasks, or `rlm resume`, which is a pause of none."""
    tasks = frozenset(task for task in _TASKS if stage.random.random() < 0.3)
    stage.world.pause(tasks)
    return f"paused are {sorted(task.name for task in tasks)}"


def take_lease(stage: Stage) -> str | None:
    """Somebody is about to read objects by itself."""
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
    """A share group has done with some more of what is committed."""
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
    """A tool deletes records at the broker itself, past every gateway."""
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
"""None of them in most stories: each hinders what the others are to find."""
