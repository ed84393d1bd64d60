"""How often an open stream looks for new records: a fast log is read in small pieces."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rlm.policy.stream.permit import OPEN_BYTES
from rsm.segment.offload_settings import OffloadMode
from tests.fakes.world import KEEP_REMOTE, World
from tests.segment_builder import build_batch, record

_ROLLOVER_MS = 5_000
_LOOK_MS = _ROLLOVER_MS // 5
STREAMS = replace(
    KEEP_REMOTE,
    local_retention_ms=-1,
    offload_mode=OffloadMode.STREAM,
    offload_segment_max_bytes=1 << 30,
    offload_segment_rollover_ms=_ROLLOVER_MS,
)
_VALUE = bytes(OPEN_BYTES)


def produce_parts(world: World, count: int) -> None:
    """Write batches, each of which fills a part."""
    leader = world.leader()
    for _ in range(count):
        content = [record(leader.end_offset, _VALUE, timestamp_ms=world.clock.wall_ms())]
        leader.append(build_batch(content, leader_epoch=leader.leader_epoch or 0))
    world.commit()


def _pauses_ms(growths: list[int]) -> list[int]:
    """Stream a log that grows by these numbers of parts after each pause; return the pauses."""
    world = World(policy=STREAMS)
    process = world.start()
    looks_ms: list[int] = []

    def look() -> None:
        now_ms = world.clock.monotonic_ms()
        if looks_ms and now_ms > looks_ms[-1] and growths:
            produce_parts(world, growths.pop(0))
        looks_ms.append(now_ms)

    produce_parts(world, 1)
    world.cycle()
    for _ in range(40):
        process.effects.before("offsets", look)
    process.watch.step()
    return [later - now for now, later in pairwise(looks_ms) if later > now]


def test_stream_when_its_log_does_not_grow_then_looks_five_times_in_a_rollover() -> None:
    assert _pauses_ms([])[1:5] == [_LOOK_MS] * 4


def test_stream_when_its_log_grows_then_looks_again_when_a_part_has_filled() -> None:
    pauses_ms = _pauses_ms([0, 2, 1, 0])

    wanted_ms = [_LOOK_MS, _LOOK_MS // 2, _LOOK_MS // 2, _LOOK_MS]
    assert pauses_ms[1:5] == pytest.approx(wanted_ms, abs=2)  # a batch is longer than its value


def test_stream_when_its_log_grows_as_fast_as_it_can_then_pauses_all_the_same() -> None:
    assert _pauses_ms([1, 1, 1])[:4] == [50] * 4


@pytest.mark.parametrize(
    ("changed", "ended_after_ms"),
    [
        ({"offload_segment_rollover_ms": 10_000}, 10_000),
        ({"offload_segment_rollover_ms": 600_000}, 60_000),
        ({"offload_segment_max_bytes": 1 << 20}, 5_000),
    ],
)
def test_stream_when_a_limit_changes_then_only_a_lower_one_applies_to_the_open_segment(
    changed: dict[str, Any], ended_after_ms: int
) -> None:
    policy = replace(STREAMS, offload_segment_rollover_ms=60_000)
    world = World(policy=policy)
    process = world.start()
    produce_parts(world, 1)
    world.cycle()
    opened_ms = world.clock.monotonic_ms()

    def change() -> None:
        world.set_policy(replace(policy, **changed))
        process.step()

    for _ in range(2):
        process.effects.before("offsets", lambda: None)
    process.effects.before("offsets", change)
    process.watch.step()

    assert len(world.stored()) == 1
    lasted_ms = world.clock.monotonic_ms() - opened_ms
    assert lasted_ms == pytest.approx(ended_after_ms, abs=5_000)
