"""The output and the effect of `rlm leases`."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from rlm.cli.terminal.lines import fitted
from rlm.cli.topics.leases import active_leases, lease_as_json, lease_lines, release_leases
from rlmm.state.partition_state import ReadLease
from rsm.segment.ids import id_to_text
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import ORDERS, read_lease
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden
from tests.unit.rlm.cli.long_names import LONGEST_NAME, tip
from tests.unit.rlm.cli.stated_managers import Cluster

LEASE = ReadLease(
    lease_id=UUID(int=5),
    offsets=OffsetRange(start_offset=100, end_offset=1_234_567_890),
    expires_ms=86_400_000,
    holder="spark application app-20300131-0001 on host-1",
)


def test_lines_when_leases_are_active_then_as_reviewed() -> None:
    long = replace(
        LEASE,
        offsets=OffsetRange(start_offset=12_345_678_901, end_offset=98_765_432_109),
        holder="spark:worker-17.emea.example.com:8963fc49-9067-42d5-bc43-898c595b1f85: "
        "reconciliation of the third quarter, started by hand",
    )
    leases = [(ORDERS, LEASE), (tip(), long), (tip(LONGEST_NAME), long)]

    assert_golden("leases_list.txt", fitted(lease_lines(leases), COLUMNS))


def test_lines_when_there_are_none_then_say_so() -> None:
    assert list(lease_lines([])) == ["no read leases"]


def test_json_when_a_lease_is_active_then_its_holder_offsets_and_end() -> None:
    assert lease_as_json(ORDERS, LEASE) == {
        "topic": "orders",
        "topic_id": id_to_text(ORDERS.topic_id),
        "partition": 0,
        "lease_id": id_to_text(UUID(int=5)),
        "holder": LEASE.holder,
        "start_offset": 100,
        "end_offset": 1_234_567_890,
        "expires_ms": 86_400_000,
    }


def test_release_when_one_of_two_leases_is_released_then_the_other_still_blocks() -> None:
    cluster = Cluster()
    other = replace(read_lease(), lease_id=UUID(int=9), holder="an export")
    for event in (read_lease(), other):
        assert cluster.metadata.publish(event).accepted
    leases = active_leases(cluster.metadata, [ORDERS])

    release_leases(cluster.metadata, [each for each in leases if each[1].holder == "an audit"])

    assert cluster.metadata.caught_up(ORDERS)
    assert [lease.holder for _, lease in active_leases(cluster.metadata, [ORDERS])] == ["an export"]
