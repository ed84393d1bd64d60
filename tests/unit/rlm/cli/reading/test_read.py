"""The anomalies that `rlm read` records."""

from __future__ import annotations

import pytest

from rlm.cli.reading.read import report_damage
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.errors import NotFoundError
from tests.remote_world import TIP, RemoteWorld, segment_of


@pytest.mark.parametrize(("number", "offset"), [(0, 0), (-1, 5)], ids=["log", "companion"])
def test_read_when_an_object_is_missing_then_recorded(number: int, offset: int) -> None:
    world = RemoteWorld()
    world.claim()
    stored = world.store(segment_of(0))
    world.objects.delete(stored.objects[number].key)
    with pytest.raises(NotFoundError) as caught:
        list(world.reader().scan(TIP, offset))

    report_damage(world.metadata, world.clock, caught.value)

    (found,) = world.metadata.partition_state(TIP).anomalies
    assert (found.segment, found.object_key, found.kind) == (
        stored.segment_id.id,
        stored.objects[number].key,
        AnomalyKind.MISSING,
    )


def test_read_when_the_offset_is_out_of_range_then_nothing_is_recorded() -> None:
    world = RemoteWorld()
    world.claim()

    report_damage(world.metadata, world.clock, NotFoundError("offset out of range", offset=7))

    assert world.metadata.partition_state(TIP).anomalies == ()
