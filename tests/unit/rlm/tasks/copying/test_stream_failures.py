"""What failed streams and failed copies of a partition mean for each other: nothing."""

from __future__ import annotations

import pytest

from tests.log_records import message_of
from tests.twins.process import Process, ProcessSettings
from tests.twins.world import TIP, World
from tests.unit.rlm.tasks.copying.test_streams import SEGMENTS, STREAMS, UNREACHABLE, run, watch

_LONG = ProcessSettings(first_pause_ms=60_000)


def _errors(process: Process, prefix: str) -> float | None:
    return process.metrics.registry.get_sample_value(f"{prefix}_errors_total", {"topic": TIP.topic})


def test_stream_when_it_fails_then_called_a_stream_and_counted_as_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    caplog.set_level("INFO", "rlm")
    process.effects.fail("write .log", UNREACHABLE)

    run(world, process)

    said = [message_of(line) for line in caplog.records]
    assert [line for line in said if "fail" in line or "again" in line] == [
        "stream failed",
        "streams succeed again",
    ]
    assert _errors(process, "rlm_stream") == 1
    assert _errors(process, "kafka_server_remote_copy") == 1


def test_copy_when_a_stream_has_just_failed_then_does_not_wait() -> None:
    world = World(policy=STREAMS, settings=_LONG)
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", UNREACHABLE)
    world.cycle()
    watch(process, times=6)
    failed = process.reports[0].copy_blocked, world.stored()

    world.set_policy(SEGMENTS)
    world.cycle()

    assert failed == (None, [])
    assert world.stored() == [(0, 10)]


def test_stream_when_a_copy_has_just_failed_then_does_not_wait() -> None:
    world = World(policy=SEGMENTS, settings=_LONG)
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", UNREACHABLE)
    world.cycle()

    world.set_policy(STREAMS)
    run(world, process)

    assert world.stored() == [(0, 10)]
