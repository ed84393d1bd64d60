"""How a copy ends when the process stops."""

from __future__ import annotations

import pytest

from rsm.segment.errors import StoppedError
from rsm.segment.metadata import SegmentState
from tests.twins.world import TIP, World
from tests.unit.rlm.tasks.single_copies import copy_only


@pytest.mark.parametrize("checks", range(1, 6))
def test_copy_when_the_process_stops_then_stopped_and_no_object_is_left(checks: int) -> None:
    world = World()
    world.segments(1)
    process = world.start()
    process.leadership.claim_all(process.leadership.keep_only({TIP: 0}))
    asked_count = 0

    def stopping() -> bool:
        nonlocal asked_count
        asked_count += 1
        return asked_count >= checks

    with pytest.raises(StoppedError, match="the process stops"):
        copy_only(world, process, 0, stopping=stopping)

    assert world.object_names() == []
    assert world.records(SegmentState.COPY_SEGMENT_FINISHED) == []
