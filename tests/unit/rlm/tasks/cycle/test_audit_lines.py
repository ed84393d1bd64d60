"""Each removal from a broker or the store is logged, with the rule and the compared values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.events.policy import OutagePolicy
from tests.fakes.world import KEEP_REMOTE, TIP, World
from tests.log_records import fields_of, message_of
from tests.unit.rlm.tasks.cycle.test_outages import OutageWorld
from tests.unit.rlm.tasks.deleting.test_expiring import DELETE_FINISHED, expired_world


def fields_of_lines(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, object]]:
    """Return the fields of each of these log lines."""
    return [
        {"level": record.levelname, **fields_of(record)}
        for record in caplog.records
        if message_of(record) == message
    ]


def test_trim_when_carried_out_then_a_line_with_the_rule_and_its_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 79: one line for each trim."""
    caplog.set_level("INFO", "rlm")
    world = World(policy=replace(KEEP_REMOTE, local_retention_ms=0))
    world.segments(3)
    world.start()

    world.settle()

    lines = fields_of_lines(caplog, "trimmed local log")
    cuts = [offset for _, offset in world.hosts[1].broker.deletions]
    assert [(line["topic_partition"], line["offset"]) for line in lines] == [
        (TIP, offset) for offset in cuts
    ]
    assert all(str(line["rule"]).startswith("local.retention.ms=0 measured=") for line in lines)
    assert lines != []


def test_expiry_when_carried_out_then_a_line_for_the_start_and_for_each_segment(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 67."""
    world, process = expired_world()
    caplog.set_level("INFO", "rlm")

    world.settle()

    lines = fields_of_lines(caplog, "deleted segment")
    assert [(line["base_offset"], line["end_offset"]) for line in lines] == [(0, 10), (10, 20)]
    assert len(lines) == process.effects.performed.count(DELETE_FINISHED)
    assert [line["rule"] for line in lines] == ["below log start 20"] * 2
    (moved,) = fields_of_lines(caplog, "moved the log start")
    assert str(moved["rule"]).startswith("retention.ms=600000 measured=")


def test_shed_when_carried_out_then_lines_for_the_gap_and_for_the_trim(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 93; R4, R6: shedding is always logged."""
    world = OutageWorld(policy=replace(KEEP_REMOTE, outage_policy=OutagePolicy.SHED_OLDEST))
    world.lose_store()
    world.segments(6)
    world.cycle()
    caplog.set_level("INFO", "rlm")
    world.fill(90)

    world.cycle()

    (gap,) = fields_of_lines(
        caplog, "recorded a gap: its records were lost before they were stored"
    )
    (trim,) = fields_of_lines(caplog, "trimmed local log")
    assert (gap["level"], gap["reason"]) == ("WARNING", "SHED")
    assert str(gap["offsets"]) == f"[0, {trim['offset']})"
    assert "=" in str(trim["rule"])
