"""The log lines about a topic that is deleted while a manager works on its partitions."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from tests.fakes.world import INTERVAL_MS, World
from tests.log_records import message_of

PARTITIONS = 5


def _lines(caplog: pytest.LogCaptureFixture) -> Counter[tuple[str, str]]:
    """Return the levels and messages of these lines at INFO and above."""
    return Counter(
        (record.levelname, message_of(record))
        for record in caplog.records
        if record.levelno >= logging.INFO and "no such topic or partition" in record.getMessage()
    )


def _delete_topic(world: World) -> None:
    for host in world.hosts.values():
        host.broker.gone.update(world.tips)


def test_copies_when_their_topic_is_deleted_then_one_line_and_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    world = World(partitions=PARTITIONS)
    for tip in world.tips:
        world.segments(1, tip=tip)
    process = world.start()
    process.effects.after("offsets", lambda: _delete_topic(world))  # the cycle's own request

    process.step()

    assert _lines(caplog) == {("INFO", "copy failed"): 1}


def test_trims_when_their_topic_is_deleted_then_one_line_and_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(partitions=PARTITIONS)
    for tip in world.tips:
        world.segments(3, tip=tip)
    process = world.start()
    process.step()
    world.clock.advance(INTERVAL_MS)
    caplog.set_level(logging.INFO)
    process.effects.after("publish LocalLogTrimmed", lambda: _delete_topic(world))

    process.step()

    assert _lines(caplog) == {("INFO", "gave up a trim"): 1}
