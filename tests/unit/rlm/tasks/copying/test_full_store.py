"""A store without space: the manager's metrics, readiness and reports."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

from prometheus_client import CollectorRegistry

from rlm.app.manager_gauges import ManagerGauges
from rlm.cli.reading.wide_table import blocked_text
from rlm.metrics.metrics import Metrics
from rlm.policy.blocked import Blocked
from rlm.status.document import PartitionReport
from rlm.status.failures import cause_of, failing_copies, failing_reasons
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError
from rsm.storage.filesystem.store_root import store_error
from tests.fakes.world import INTERVAL_MS, World
from tests.unit.rlm.app.no_copies import NoCopies

PARTITIONS = 3
CAUSE = "no space left on device"
GAUGE = "rlm_copy_failing_partitions"


def full() -> TieredStorageError:
    """Raise the error of the directory store."""
    refused = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "00000000000000000000.log")
    error = store_error(refused, "a segment")
    error.__cause__ = refused
    return error


def reports_of_a_full_store(cycles: int) -> tuple[PartitionReport, ...]:
    """Return the reports after this many cycles with failed copies only."""
    world = World(partitions=PARTITIONS)
    for tip in world.tips:
        world.segments(1, tip=tip)
    process = world.start()
    process.effects.fail("write .log", full(), times=PARTITIONS * cycles)
    for _ in range(cycles):
        world.clock.advance(INTERVAL_MS)
        process.step()
    return process.reports


def gauge_values(metrics: Metrics) -> dict[str, float]:
    return {
        sample.labels["cause"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == GAUGE
    }


def test_reasons_when_the_store_is_full_then_one_names_the_cause_and_counts_partitions() -> None:
    """One failed attempt is no reason, because most attempts succeed when they are repeated."""
    after_one = reports_of_a_full_store(2)
    after_two = reports_of_a_full_store(3)

    assert failing_reasons(after_one) == []
    assert failing_reasons(after_two) == [f"copies fail: {CAUSE} (3 partitions)"]


def test_status_when_the_store_is_full_then_the_table_names_the_cause() -> None:
    (report, *_) = reports_of_a_full_store(2)

    assert blocked_text(report.copy_blocked) == f"failing: {CAUSE}"
    assert blocked_text(Blocked(reason="not_stored")) == "not_stored"
    assert blocked_text(None) == ""


def test_gauge_when_there_is_space_again_then_the_cause_leaves_it() -> None:
    metrics = Metrics(CollectorRegistry())
    gauges = ManagerGauges(metrics, NoCopies(), NoCopies(), NoCopies())
    failing = reports_of_a_full_store(3)

    gauges.show((), failing)
    while_full = gauge_values(metrics)
    gauges.show(failing, [replace(each, copy_blocked=None) for each in failing])

    assert while_full == {CAUSE: 3.0}
    assert gauge_values(metrics) == {}


def test_causes_when_there_are_many_then_the_rest_is_counted_together() -> None:
    (report, *_) = reports_of_a_full_store(3)
    blocked = report.copy_blocked
    assert blocked is not None
    many = [
        replace(
            report,
            copy_blocked=replace(blocked, values={**blocked.values, "cause": f"cause {number}"}),
        )
        for number in range(15)
    ]

    found = failing_copies(many)

    assert len(found) == 11
    assert found["other causes"] == 5


def test_cause_when_no_system_call_failed_then_is_the_message_without_its_context() -> None:
    assert cause_of(RetriableError("the store asks for fewer requests", name="a")) == (
        "the store asks for fewer requests"
    )
    assert cause_of(full()) == CAUSE


def test_reasons_when_a_segment_is_corrupt_then_the_process_stays_ready() -> None:
    """That partition waits for an operator, as rlm_copy_blocked shows; the others are copied."""
    world = World()
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", CorruptError("bad CRC"), times=5)
    for _ in range(3):
        world.clock.advance(2 * 3_600_000)
        process.step()

    (report,) = process.reports
    assert report.copy_blocked is not None
    assert report.copy_blocked.reason == "corrupt"
    assert failing_reasons(process.reports) == []
