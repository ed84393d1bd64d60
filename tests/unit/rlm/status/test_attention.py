"""Each kind of problem in a status: why, and which command to type next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rlm.policy.blocked import Blocked
from rlm.policy.view import AttemptFailure
from rlm.status.attention import find_problems
from rlm.status.cluster_processes import ProcessStatus
from rlm.status.cluster_status import DeletedTopic, PartitionStatus
from rlm.status.document import StreamReport
from rlm.status.problem import Problem, ProblemKind
from rlmm.events.registration import FileDefault
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.ids import id_to_text
from tests.metadata_builder import anomaly
from tests.unit.rlm.status.status_rows import reporting, row, tip_of, unreported

TIP = tip_of()
_TOPIC_ID = id_to_text(TIP.topic_id)
MANAGER = ProcessStatus(role="manager", broker_id=1, address="", is_live=True, is_ready=True)
FAILURE = AttemptFailure(error="e", cause="no space left on device", is_corrupt=False, attempts=3)
FAILING = Blocked(reason="failing", values={"cause": "no space left on device", "attempts": 2})


def problems(
    *rows: PartitionStatus,
    silent_managers: Mapping[int, str] | None = None,
    processes: tuple[ProcessStatus, ...] = (MANAGER,),
) -> tuple[Problem, ...]:
    return find_problems(
        rows, silent_managers=silent_managers or {}, silent_leaders={}, processes=processes
    )


def only(found: tuple[Problem, ...]) -> tuple[ProblemKind, str, str]:
    (problem,) = found
    return problem.kind, problem.reason, problem.command


@pytest.mark.parametrize(
    ("reported", "kind", "reason", "command"),
    [
        (
            {"is_diverged": True, "trim_blocked": Blocked(reason="diverged")},
            ProblemKind.DIVERGED,
            "the broker's log no longer contains stored records: trims and deletions wait",
            "rlm topic resolve orders --dry-run",
        ),
        (
            {"has_external_start": True},
            ProblemKind.EXTERNAL_START,
            "another program deleted records of the topic",
            "rlm topic resolve orders --dry-run",
        ),
        (
            {"repair_failure": FAILURE},
            ProblemKind.REPAIRS_FAIL,
            "repairs of damaged segments fail: no space left on device",
            "rlm storage check",
        ),
        (
            {"stream": StreamReport(merge_failure=FAILURE)},
            ProblemKind.MERGES_FAIL,
            "merges of small streamed segments fail: no space left on device",
            "rlm storage check",
        ),
        (
            {"problem": "the broker does not answer"},
            ProblemKind.NOT_EVALUATED,
            "the broker does not answer",
            "rlm processes",
        ),
        (
            {"copy_blocked": FAILING},
            ProblemKind.COPY_BLOCKED,
            "copies fail: no space left on device",
            "rlm storage check",
        ),
        (
            {"trim_blocked": Blocked(reason="share_groups_hidden")},
            ProblemKind.TRIM_BLOCKED,
            (
                "trims blocked: the Kafka user of rlm lacks Describe on the cluster, so brokers "
                "hide share groups"
            ),
            "kafka-acls.sh --list --cluster",
        ),
        (
            {"expiry_blocked": Blocked(reason="read_lease", values={"holder": "spark:host"})},
            ProblemKind.EXPIRY_BLOCKED,
            "expiry blocked: a job reads data past its retention: spark:host",
            "rlm leases list orders:0",
        ),
    ],
    ids=lambda value: value.value if isinstance(value, ProblemKind) else None,
)
def test_partition_when_its_manager_reports_a_problem_then_why_and_the_next_command(
    reported: dict[str, object], kind: ProblemKind, reason: str, command: str
) -> None:
    found = problems(reporting(reported))

    assert only(found) == (kind, reason, command)
    assert found[0].partitions == (TIP,)


@pytest.mark.parametrize(
    ("is_paused", "reason", "command"),
    [
        (
            False,
            f"no broker has a topic with id {_TOPIC_ID}, so its stored data will be deleted",
            f"rlm pause orders delete --topic-id {_TOPIC_ID}",
        ),
        (
            True,
            f"no broker has a topic with id {_TOPIC_ID}; the deletion of its stored data is paused",
            f"rlm read orders --topic-id {_TOPIC_ID} --from-store --json",
        ),
    ],
)
def test_topic_when_deleted_then_first_of_all_problems_with_the_command_that_stops_it(
    reason: str, command: str, *, is_paused: bool
) -> None:
    deleted = DeletedTopic(
        topic_id=TIP.topic_id, topic="orders", partitions=(TIP,), is_paused=is_paused
    )
    diverged = reporting({"is_diverged": True})

    found = find_problems(
        [diverged], silent_managers={}, silent_leaders={}, deleted_topics=[deleted]
    )

    assert [each.kind for each in found] == [ProblemKind.TOPIC_DELETED, ProblemKind.DIVERGED]
    assert only(found[:1]) == (ProblemKind.TOPIC_DELETED, reason, command)
    assert found[0].partitions == (TIP,)


def test_partition_when_healthy_then_no_problem() -> None:
    blocked = Blocked(reason="newest_rolled_segment")

    assert problems(row(trim_blocked=blocked, lag_segments=2, lag_bytes=9)) == ()


def test_partition_when_it_has_no_leader_then_only_that() -> None:
    found = problems(replace(unreported(row()), leader_id=None))

    assert only(found) == (ProblemKind.NO_LEADER, "no broker leads it", "rlm processes")


def test_partition_when_its_leader_gives_no_offsets_then_names_the_broker_and_the_error() -> None:
    found = find_problems([row()], silent_managers={}, silent_leaders={TIP: "timed out"})

    reason = "its leader, broker 1, does not answer: timed out"
    assert only(found) == (ProblemKind.LEADER_SILENT, reason, "rlm processes")


def test_partition_when_a_live_manager_reports_nothing_of_it_then_says_so() -> None:
    found = problems(unreported(row()))

    reason = "the manager of broker 1 does not yet report the partition as led by that broker"
    assert only(found) == (ProblemKind.NOT_REPORTED, reason, "rlm processes")


@pytest.mark.parametrize("policy_state", ["DISABLED", None])
def test_partition_when_its_topic_is_not_tiered_then_nobody_need_report_it(
    policy_state: str | None,
) -> None:
    assert problems(replace(unreported(row()), policy_state=policy_state)) == ()


def test_manager_when_silent_then_one_problem_with_the_partitions_that_its_broker_leads() -> None:
    other = replace(row(partition=2), leader_id=2)
    rows = (unreported(row()), unreported(row(partition=1)), other)

    found = problems(*rows, silent_managers={1: "it does not answer"})

    assert only(found) == (ProblemKind.MANAGER_SILENT, "it does not answer", "rlm processes")
    assert found[0].process == "manager of broker 1"
    assert [each.partition for each in found[0].partitions] == [0, 1]


def test_manager_when_its_metadata_is_not_ready_then_its_own_reason() -> None:
    unready = replace(MANAGER, is_ready=False, reasons=("metadata is being read",))

    found = problems(row(), processes=(unready,))

    reason = "not ready: metadata is being read"
    assert only(found) == (ProblemKind.NOT_READY, reason, "rlm processes")


def test_process_when_it_is_a_gateway_of_the_cluster_then_the_problem_names_no_broker() -> None:
    unready = replace(MANAGER, role="gateway", broker_id=-1, is_ready=False, reasons=("starting",))

    (problem,) = problems(row(), processes=(unready,))

    assert problem.process == "gateway of the cluster"


@pytest.mark.parametrize(
    "process",
    [
        replace(MANAGER, is_live=False),
        replace(MANAGER, is_ready=None),
        replace(MANAGER, role="broker", is_ready=False),
    ],
)
def test_process_when_dead_or_of_an_older_version_then_no_problem_of_readiness(
    process: ProcessStatus,
) -> None:
    assert problems(row(), processes=(process,)) == ()


def test_gateway_when_dead_and_its_broker_leads_then_a_problem_with_these_partitions() -> None:
    dead = replace(MANAGER, role="gateway", is_live=False)
    other = replace(row(partition=1), leader_id=2)

    found = problems(row(), other, processes=(MANAGER, dead, dead))

    reason = "its heartbeats ended: clients cannot read stored data of these partitions through it"
    assert only(found) == (ProblemKind.GATEWAY_SILENT, reason, "rlm processes")
    assert (found[0].process, found[0].partitions) == ("gateway of broker 1", (TIP,))


@pytest.mark.parametrize(
    "processes",
    [
        (replace(MANAGER, role="gateway", is_live=False, broker_id=2),),
        (replace(MANAGER, role="gateway", is_live=False, broker_id=-1),),
        (replace(MANAGER, role="gateway", is_live=False), replace(MANAGER, role="gateway")),
        (replace(MANAGER, role="gateway", is_live=False, is_stopped=True),),
    ],
    ids=["its broker leads nothing", "of no broker", "replaced", "asked to stop"],
)
def test_gateway_when_dead_and_no_partition_needs_it_then_no_problem(
    processes: tuple[ProcessStatus, ...],
) -> None:
    assert problems(row(), processes=processes) == ()


def test_gateway_when_dead_and_the_named_topic_is_not_tiered_then_no_problem() -> None:
    dead = replace(MANAGER, role="gateway", is_live=False)

    assert problems(replace(unreported(row()), policy_state=None), processes=(dead,)) == ()


def test_copies_when_they_fail_then_the_managers_readiness_does_not_repeat_it() -> None:
    reasons = ("copies fail: no space left on device (1 partition)",)
    unready = replace(MANAGER, is_ready=False, reasons=reasons)

    failing, other = (
        problems(row(copy_blocked=FAILING), processes=(unready,)),
        problems(row(), processes=(unready,)),
    )

    assert [each.kind for each in failing] == [ProblemKind.COPY_BLOCKED]
    assert [each.kind for each in other] == [ProblemKind.NOT_READY]


def test_copies_when_those_of_other_topics_fail_then_the_managers_readiness_says_so() -> None:
    """The named topic only waits for its copy lag, so no other problem shows the failure."""
    reasons = ("copies fail: no space left on device (3 partitions)",)
    unready = replace(MANAGER, is_ready=False, reasons=reasons)

    found = problems(row(copy_blocked=Blocked(reason="copy_lag")), processes=(unready,))

    assert [each.kind for each in found] == [ProblemKind.NOT_READY]


def test_copy_and_trim_when_one_reason_blocks_both_then_shown_once() -> None:
    blocked = Blocked(reason="not_owner")

    found = problems(row(copy_blocked=blocked, trim_blocked=blocked))

    assert [each.kind for each in found] == [ProblemKind.COPY_BLOCKED]


def test_copy_and_trim_when_both_are_paused_then_each_has_its_command() -> None:
    blocked = Blocked(reason="paused")

    found = problems(row(copy_blocked=blocked, trim_blocked=blocked, expiry_blocked=blocked))

    assert [each.command for each in found] == [
        "rlm resume orders copy",
        "rlm resume orders trim",
        "rlm resume orders delete",
    ]


def test_object_when_damaged_then_the_first_one_and_the_command_that_explains_its_segment() -> None:
    found = (anomaly(1, key="a.log"), anomaly(2, key="b.log"))
    blocked = Blocked(reason="anomaly", values={"object": "a.log", "sound_end_offset": 100})
    damaged = replace(row(trim_blocked=blocked), anomalies=found, damaged_from_offset=100)

    assert only(problems(damaged)) == (
        ProblemKind.DAMAGED_OBJECTS,
        "a stored object is missing: a.log and 1 more",
        "rlm explain orders:0 100",
    )


def test_object_when_only_the_manager_found_it_damaged_then_the_blocked_trim_names_it() -> None:
    blocked = Blocked(reason="anomaly", values={"object": "a.log", "sound_end_offset": 100})

    assert only(problems(row(trim_blocked=blocked))) == (
        ProblemKind.TRIM_BLOCKED,
        "trims blocked: a stored object may be damaged: a.log",
        "rlm explain orders:0 100",
    )


def test_object_when_its_segment_was_given_up_then_no_problem() -> None:
    found = (anomaly(1), anomaly(1, kind=AnomalyKind.LOSS_ACCEPTED))

    assert problems(replace(row(), anomalies=found)) == ()


def test_problems_when_many_partitions_have_one_reason_then_one_problem_of_all() -> None:
    found = problems(*(row(partition=number, copy_blocked=FAILING) for number in range(3)))

    (problem,) = found
    assert [each.partition for each in problem.partitions] == [0, 1, 2]


def test_problems_when_several_then_the_most_urgent_first() -> None:
    found = problems(row(copy_blocked=FAILING), row("payments", is_diverged=True))

    assert [each.kind for each in found] == [ProblemKind.DIVERGED, ProblemKind.COPY_BLOCKED]


def test_problem_when_printed_as_json_then_the_documented_fields() -> None:
    (problem,) = problems(row(copy_blocked=FAILING))

    assert problem.to_json() == {
        "kind": "copy_blocked",
        "process": None,
        "partitions": ["orders:0"],
        "reason": "copies fail: no space left on device",
        "next_command": "rlm storage check",
    }


def streamed(**fields: int) -> PartitionStatus:
    report = StreamReport(rollover_ms=60_000, **fields)  # type: ignore[arg-type]  # only numbers
    return row(stream=report)


@pytest.mark.parametrize(("waiting", "is_late"), [(1_000, False), (1_001, True)])
def test_stream_when_many_small_segments_wait_then_merges_are_late(
    waiting: int, *, is_late: bool
) -> None:
    found = problems(streamed(merge_waiting_segments=waiting))

    assert [(each.kind, each.reason, each.command) for each in found] == [
        (
            ProblemKind.MERGES_LATE,
            "more than 1000 small streamed segments wait to be merged",
            "rlm segments list orders",
        )
    ] * is_late


@pytest.mark.parametrize(("open_ms", "is_hanging"), [(900_000, False), (900_001, True)])
def test_stream_when_a_transaction_outlives_kafkas_default_then_it_hangs(
    open_ms: int, *, is_hanging: bool
) -> None:
    found = problems(streamed(open_transaction_ms=open_ms))

    assert [each.kind for each in found] == [ProblemKind.HANGING_TRANSACTION] * is_hanging


def test_stream_when_its_broker_allows_longer_transactions_then_that_limit_counts() -> None:
    rows = (
        streamed(open_transaction_ms=2_000_000),
        replace(streamed(open_transaction_ms=2_000_000), leader_id=2),
    )
    limits = {1: 3_600_000, 2: 60_000}

    found = find_problems(rows, silent_managers={}, silent_leaders={}, transaction_max_ms=limits)

    reason = (
        "a transaction has been open for longer than transaction.max.timeout.ms=60000: "
        "no later record is stored"
    )
    command = "kafka-transactions.sh find-hanging --topic orders"
    assert only(found) == (ProblemKind.HANGING_TRANSACTION, reason, command)


@pytest.mark.parametrize(("max_ms", "is_problem"), [(3_600_000, False), (60_000, True)])
def test_copies_when_an_open_transaction_blocks_them_then_its_brokers_limit_counts(
    max_ms: int, *, is_problem: bool
) -> None:
    blocked = Blocked(
        reason="not_stable_yet", values={"last_stable_offset": 7, "high_watermark": 9}
    )
    rows = (row(copy_blocked=blocked, oldest_unstored_age_ms=1_000_000),)

    found = find_problems(
        rows, silent_managers={}, silent_leaders={}, transaction_max_ms={1: max_ms}
    )

    assert [each.kind for each in found] == [ProblemKind.COPY_BLOCKED] * is_problem


def test_stream_when_a_hanging_transaction_also_blocks_rolled_segments_then_one_problem() -> None:
    blocked = Blocked(reason="not_stable_yet", values={"last_stable_offset": 7})
    stream = StreamReport(open_transaction_ms=1_000_000)

    found = problems(
        row(stream=stream, copy_blocked=blocked, oldest_unstored_age_ms=1_000_000),
    )

    assert [each.kind for each in found] == [ProblemKind.HANGING_TRANSACTION]


@pytest.mark.parametrize(("unstored_ms", "is_late"), [(960_000, False), (960_001, True)])
def test_stream_when_records_wait_long_after_the_rollover_time_then_late(
    unstored_ms: int, *, is_late: bool
) -> None:
    found = problems(streamed(unstored_ms=unstored_ms))

    assert [(each.kind, each.command) for each in found] == [
        (ProblemKind.STREAM_LATE, "rlm offload-status orders")
    ] * is_late


def test_stream_when_its_copies_fail_then_that_is_the_problem() -> None:
    stream = StreamReport(unstored_ms=10_000_000, rollover_ms=1_000)

    found = problems(row(stream=stream, copy_blocked=FAILING))

    assert [each.kind for each in found] == [ProblemKind.COPY_BLOCKED]


def test_stream_when_an_earlier_manager_reports_it_then_no_problem() -> None:
    assert problems(row(stream=StreamReport(begin_offset=5, age_ms=10**9))) == ()


def test_files_when_a_live_managers_differs_then_the_process_is_named() -> None:
    """The files of dead managers and of gateways do not count."""
    given = replace(MANAGER, file_defaults=(FileDefault(key="offload.mode", value="stream"),))
    other = replace(
        given, broker_id=2, file_defaults=(FileDefault(key="offload.mode", value="segment"),)
    )
    dead = replace(other, broker_id=3, is_live=False)
    gateway = replace(other, broker_id=4, role="gateway")

    (problem,) = problems(processes=(given, other, dead, gateway))

    assert (problem.kind, problem.process) == (ProblemKind.FILES_DIFFER, "manager of broker 2")
    assert "offload.mode=segment, not stream" in problem.reason
    assert problem.command == "rlm processes --json"
