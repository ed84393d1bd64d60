"""The end-to-end check: what each fault of a cluster looks like, and that nothing is left."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from rlm.policy.blocked import Blocked
from rlm.policy.request.canary import CheckResult, CheckRow
from rlmm.events.registration import ProcessRole
from rsm.segment.errors import RetriableError
from tests.unit.rlm.operator.canary_world import WAIT_MS, CanaryWorld, process

FAILED, PASSED, SKIPPED = CheckResult.FAILED, CheckResult.PASSED, CheckResult.SKIPPED


def failures(world: CanaryWorld) -> dict[tuple[str, str], str]:
    return {(row.check, row.target): row.problem for row in world.rows if row.result is FAILED}


def results(rows: tuple[CheckRow, ...], check: str) -> list[CheckResult]:
    return [row.result for row in rows if row.check == check]


def test_check_when_all_is_well_then_every_part_passes_and_nothing_is_left() -> None:
    world = CanaryWorld()

    rows = world.check().run()

    (name,) = world.created
    assert {row.result for row in rows} == {PASSED}
    assert results(rows, "written through") == results(rows, "read through") == [PASSED] * 3
    assert results(rows, "stored") == results(rows, "trimmed") == [PASSED] * 3
    assert world.created[name] == ((1, 2, 3), (2, 3, 1), (3, 1, 2))
    assert world.deleted == [name, "rlm-canary-1-dead"]
    assert tuple(world.rows) == rows


def test_check_when_records_are_written_then_each_is_old_and_begins_a_segment() -> None:
    world = CanaryWorld()

    world.check().run()

    for log in world.logs.values():
        times = [record.timestamp_ms for record in log]
        assert len(log) == 4
        assert world.clock.now_ms - times[-1] > 900_000
        assert all(later - earlier > 60_000 for earlier, later in itertools.pairwise(times))


def test_check_when_kept_then_the_topic_is_not_deleted() -> None:
    world = CanaryWorld()

    rows = world.check(keep=True).run()

    assert world.deleted == []
    assert results(rows, "deleted") == []


def test_registrations_when_asked_alone_then_nothing_is_created() -> None:
    world = CanaryWorld()

    rows = world.check().registrations()

    assert results(rows, "registered") == [PASSED] * 6
    assert results(rows, "reached") == [PASSED] * 3
    assert world.created == {}


def test_check_when_gateways_share_a_loopback_address_then_each_says_so_with_the_setting() -> None:
    world = CanaryWorld()
    for node_id in world.node_ids:
        world.gateways[node_id] = process(ProcessRole.GATEWAY, node_id, "127.0.0.1:19092")

    world.check().registrations()

    problems = [failures(world)["registered", f"gateway of broker {n}"] for n in world.node_ids]
    assert all("127.0.0.1:19092, which other hosts cannot reach" in each for each in problems)
    assert all("gateway.listener" in each for each in problems)


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0:19092", "10.0.0.2:0", "[::]:19092", "[::ffff:127.0.0.1]:19092", "localhost.:19092"],
)
def test_check_when_a_registered_address_leads_nowhere_then_says_so(address: str) -> None:
    """The address belongs to another program, or to a process of an older version."""
    world = CanaryWorld()
    world.gateways[2] = process(ProcessRole.GATEWAY, 2, address)

    world.check().registrations()

    assert "other hosts cannot reach" in failures(world)["registered", "gateway of broker 2"]


def test_check_when_two_gateways_share_an_address_then_both_name_the_other() -> None:
    world = CanaryWorld()
    world.gateways[2] = process(ProcessRole.GATEWAY, 2, "10.0.0.1:19092")

    world.check().registrations()

    found = failures(world)
    assert "as the gateway of broker 2 does" in found["registered", "gateway of broker 1"]
    assert "as the gateway of broker 1 does" in found["registered", "gateway of broker 2"]
    assert ("registered", "gateway of broker 3") not in found


def test_check_when_a_manager_registers_loopback_then_names_the_setting() -> None:
    world = CanaryWorld()
    world.managers[2] = process(ProcessRole.MANAGER, 2, "127.0.0.1:9465")
    world.unreachable_managers = {2}

    world.check().registrations()

    found = failures(world)
    assert "Set rest.listener" in found["registered", "manager of broker 2"]
    assert found["reached", "manager of broker 2 at 127.0.0.1:9465"] == "no answer"


def test_check_when_a_process_is_not_ready_then_gives_its_reasons() -> None:
    world = CanaryWorld()
    world.gateways[3] = replace(
        process(ProcessRole.GATEWAY, 3, "", unready=("address in use",)), gateway_address=""
    )

    world.check().registrations()

    assert failures(world) == {("registered", "gateway of broker 3"): "not ready: address in use"}


def test_check_when_a_gateway_cannot_be_reached_then_the_rest_is_still_checked() -> None:
    world = CanaryWorld()
    world.unreachable_gateways = {2}

    rows = world.check().run()

    assert results(rows, "written through") == results(rows, "read through") == [FAILED] * 3
    assert results(rows, "stored") == results(rows, "trimmed") == [PASSED] * 3
    assert results(rows, "deleted") == [PASSED]


def test_check_when_a_manager_does_nothing_then_its_broker_fails_within_the_time() -> None:
    world = CanaryWorld()
    world.idle_managers = {2}
    started_ms = world.clock.now_ms

    world.check().run()

    found = failures(world)
    assert found["stored", "broker 2 (partition 1)"] == "no manager has claimed the partition"
    assert set(found) == {
        ("stored", "broker 2 (partition 1)"),
    }
    assert world.clock.now_ms - started_ms <= WAIT_MS + 60_000 + 1_000


def test_check_when_a_broker_has_no_manager_then_its_partition_is_not_waited_for() -> None:
    world = CanaryWorld()
    del world.managers[3]
    started_ms = world.clock.now_ms

    world.check().run()

    assert failures(world)["stored", "broker 3 (partition 2)"] == "no live manager is registered"
    assert world.clock.now_ms - started_ms < 10_000


@pytest.mark.parametrize(
    ("reason", "result"), [("gateway_behind", FAILED), ("within_margin", SKIPPED)]
)
def test_check_when_trims_are_blocked_then_fails_unless_configured_so(
    reason: str, result: CheckResult
) -> None:
    world = CanaryWorld()
    world.trim_blocked = {1: Blocked(reason=reason)}

    rows = world.check().run()

    (row,) = [row for row in rows if row.check == "trimmed" and row.result is not PASSED]
    assert row.target == "broker 1 (partition 0)"
    assert row.result is result
    assert row.problem == f"the broker still has offset 0: trims are blocked by {reason}"


def test_check_when_managers_have_a_longer_minimum_age_then_skips_with_its_values() -> None:
    world = CanaryWorld()
    values = {"age_ms": 700_000_000, "min_age_ms": 900_000_000}
    world.trim_blocked = {2: Blocked(reason="younger_than_min_age", values=values)}

    rows = world.check().run()

    (row,) = [row for row in rows if row.result is not PASSED]
    assert (row.check, row.result) == ("trimmed", SKIPPED)
    assert "younger_than_min_age (age_ms=700000000 min_age_ms=900000000)" in row.problem
    assert "remote.local.trim.min.age.ms is longer than this command's" in row.problem


@pytest.mark.parametrize(
    ("unknown", "used"),
    [
        ("message.timestamp.difference.max.ms", "message.timestamp.before.max.ms"),
        ("message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"),
    ],
)
def test_check_when_brokers_know_one_limit_of_timestamps_then_it_admits_the_old_records(
    unknown: str, used: str
) -> None:
    world = CanaryWorld(unknown_configs=frozenset({unknown}))
    started_ms = world.clock.now_ms

    rows = world.check(keep=True).run()

    oldest_ms = min(record.timestamp_ms for log in world.logs.values() for record in log)
    assert {row.result for row in rows} == {PASSED}
    assert unknown not in world.overrides
    assert started_ms - oldest_ms < int(world.overrides[used])


def test_check_when_a_gateway_gives_other_bytes_then_fails_for_that_gateway() -> None:
    world = CanaryWorld()
    world.corrupting_gateway = 2

    world.check().run()

    assert failures(world) == {
        ("read through", "10.0.0.2:19092"): "a record has other bytes (partition=0 offset=0)"
    }


def test_check_when_the_topic_cannot_be_created_then_ends_and_still_tries_to_delete_it() -> None:
    world = CanaryWorld()
    world.refuse_create = RetriableError("not authorized")

    rows = world.check().run()

    assert [row.check for row in rows if row.result is FAILED] == ["created"]
    assert results(rows, "tiered") == []
    assert len(world.deleted) == 2


def test_check_when_stored_data_is_not_deleted_then_says_how_much_is_left() -> None:
    world = CanaryWorld()
    world.never_delete = True

    rows = world.check().run()

    assert results(rows, "deleted from the store") == [FAILED]
    assert "segments still stored: 9;" in next(iter(failures(world).values()))
    assert results(rows, "deleted") == [PASSED]
