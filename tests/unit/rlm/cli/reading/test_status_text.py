"""What `rlm status` prints at 80 columns, as golden files in golden_status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlm.cli.reading.status_text import CommandOptions, status_text
from rlm.policy.blocked import Blocked
from rlm.policy.view import AttemptFailure
from rlm.status.attention import find_problems
from rlm.status.cluster_processes import ProcessStatus
from rlm.status.cluster_status import PartitionStatus
from rlm.status.document import StreamReport
from rlmm.events.registration import FileDefault
from tests.metadata_builder import anomaly
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden
from tests.unit.rlm.cli.long_names import LONG_NAME, LONGEST_NAME
from tests.unit.rlm.status.status_rows import MIB, reporting, row, tip_of, unreported

GOLDEN = Path(__file__).parent / "golden_status"
OPTIONS = CommandOptions(rlm="--config rlm.properties", kafka="--bootstrap-server broker1:9092")
PAUSED = Blocked(reason="paused")
FAILURE = AttemptFailure(error="e", cause="no space left on device", is_corrupt=False, attempts=3)
READY = ProcessStatus(
    role="manager",
    broker_id=1,
    address="",
    is_live=True,
    is_ready=True,
    file_defaults=(FileDefault(key="log.local.retention.ms", value="3600000"),),
)
UNREADY = replace(
    READY,
    broker_id=4,
    is_ready=False,
    reasons=("metadata is being read",),
    file_defaults=(),
)
DIFFERING = replace(
    READY,
    broker_id=5,
    file_defaults=(FileDefault(key="log.local.retention.ms", value=None),),
)
SILENT = (
    "the manager cannot be reached: Connection refused (broker_id=2, address=broker2:8090). "
    "Check rest.listener and rest.advertised.listener of that host."
)


def failing(cause: str = "no space left on device") -> Blocked:
    return Blocked(reason="failing", values={"cause": cause, "attempts": 3})


def healthy() -> tuple[PartitionStatus, ...]:
    waiting = {"lag_segments": 1, "lag_bytes": 12 * MIB, "oldest_unstored_age_ms": 200_000}
    return (reporting(waiting), row(partition=1), row("payments"))


def each_problem() -> tuple[PartitionStatus, ...]:
    return (
        row("accounts", copy_blocked=failing()),
        row("accounts", 1, trim_blocked=Blocked(reason="share_group", values={"group": "audit"})),
        row("accounts", 2, expiry_blocked=Blocked(reason="read_lease", values={"holder": "job-7"})),
        row("accounts", 3, is_diverged=True),
        row("accounts", 4, has_external_start=True),
        replace(row("accounts", 5), anomalies=(anomaly(1),), damaged_from_offset=100),
        row("accounts", 6, repair_failure=FAILURE),
        replace(unreported(row("accounts", 7)), leader_id=None),
        row("accounts", 8),
        replace(unreported(row("accounts", 9)), leader_id=2),
        replace(unreported(row("accounts", 10)), leader_id=3),
        row("accounts", 11, problem="the partition's directory was not found"),
        replace(row("ended"), policy_state="DISABLED", role="none", report=None),
    )


def streams() -> tuple[PartitionStatus, ...]:
    opened = StreamReport(
        begin_offset=400,
        position_offset=470,
        size_bytes=3 * MIB,
        age_ms=8_000,
        unstored_ms=9_000,
        rollover_ms=60_000,
    )
    idle = StreamReport(rollover_ms=60_000)
    late = replace(idle, unstored_ms=7_200_000)
    hanging = replace(idle, open_transaction_ms=1_000_000)
    return (
        row("clicks", stream=opened),
        replace(row("clicks", 1, stream=idle), pending_upload_offset=-1),
        replace(row("clicks", 2, stream=idle), pending_upload_offset=None, high_watermark=None),
        row("orders"),
        row("payments", stream=late),
        row("refunds", stream=hanging),
    )


def many_streams() -> tuple[PartitionStatus, ...]:
    stream = StreamReport(size_bytes=MIB, unstored_ms=9_000, rollover_ms=60_000)
    return tuple(
        row(f"topic-{n // 20}", n % 20, stream=stream if 20 <= n < 55 else None) for n in range(60)
    )


def many_partitions() -> tuple[PartitionStatus, ...]:
    return tuple(
        row(f"topic-{number // 50}", number % 50, copy_blocked=failing() if number < 60 else None)
        for number in range(200)
    )


def long_names() -> tuple[PartitionStatus, ...]:
    return (row(LONG_NAME, 117, copy_blocked=PAUSED), row("orders"))


def many_problems() -> tuple[PartitionStatus, ...]:
    return tuple(row(partition=n, copy_blocked=failing(f"error {n}")) for n in range(22))


CASES = {
    "nothing_is_tiered": (),
    "healthy": healthy(),
    "each_problem": each_problem(),
    "many_partitions": many_partitions(),
    "long_names": long_names(),
    "many_problems": many_problems(),
    "streams": streams(),
    "many_streams": many_streams(),
}


def shown(rows: tuple[PartitionStatus, ...]) -> list[str]:
    is_silent = any(each.leader_id == 2 for each in rows)
    problems = find_problems(
        rows,
        silent_managers={2: SILENT} if is_silent else {},
        silent_leaders={tip_of("accounts", 8): "timed out"},
        processes=(READY, UNREADY, DIFFERING) if is_silent else (READY,),
    )
    by_topic = len(rows) > 20
    text = status_text(rows, problems, options=OPTIONS, width=COLUMNS, by_topic=by_topic)
    return text.split("\n")


@pytest.mark.parametrize("case", CASES)
def test_status_when_printed_then_as_reviewed_and_80_columns(case: str) -> None:
    assert_golden(f"{case}.txt", shown(CASES[case]), golden=GOLDEN)


def test_command_when_a_name_in_it_is_wider_than_the_screen_then_on_one_line() -> None:
    wide = [
        line for line in shown((row(LONGEST_NAME, copy_blocked=PAUSED),)) if len(line) > COLUMNS
    ]

    assert wide == [f"  > rlm resume {LONGEST_NAME} copy --config rlm.properties"]


def test_status_when_a_client_chose_a_name_with_control_characters_then_none_is_printed() -> None:
    blocked = Blocked(reason="share_group", values={"group": "a\x1b[2J\rb"})
    rows = (row(trim_blocked=blocked),)
    problems = find_problems(rows, silent_managers={}, silent_leaders={})

    text = status_text(rows, problems, options=OPTIONS, width=COLUMNS, by_topic=False)

    assert all(line.isprintable() for line in text.split("\n"))
    assert "share group a?[2J?b has not" in text


@pytest.mark.parametrize(
    ("command", "complete"),
    [
        ("rlm processes", "rlm processes --config rlm.properties"),
        (
            "kafka-transactions.sh find-hanging --topic orders",
            "kafka-transactions.sh --bootstrap-server broker1:9092 find-hanging --topic orders",
        ),
    ],
)
def test_command_when_completed_then_reaches_this_cluster(command: str, complete: str) -> None:
    assert OPTIONS.complete(command) == complete
