"""Finds what needs an operator's attention in the status of a cluster. Pure.

Each problem names its process or partitions, its reason, and the command to type next. `rlm`
commands lack the cluster's options, and Kafka's commands lack `--bootstrap-server`: only the caller
knows these. Problems with the same reason and command become one problem of several partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rlm.policy.peers.differing_files import differing_files
from rlm.status.block_explanations import LONG_UNSTABLE_MS, BlockedWork, explain_block
from rlm.status.cluster_processes import BROKER, GATEWAY, MANAGER, ProcessStatus
from rlm.status.cluster_status import DeletedTopic, PartitionStatus
from rlm.status.document import PartitionReport, StreamReport
from rlm.status.failures import COPIES_FAIL, FAILING
from rlm.status.problem import Problem, ProblemKind
from rlmm.events.registration import NO_BROKER
from rsm.segment.ids import TopicIdPartition, id_to_text

_PROCESSES = "rlm processes"

DEFAULT_TRANSACTION_MAX_MS = LONG_UNSTABLE_MS
"""Kafka's default of `transaction.max.timeout.ms`."""

_STREAM_LATE_MINUTES = 15
"""The minutes after its rollover time at which a stream is late: a long upload takes less."""

_MERGE_WAITING_SEGMENTS = 1_000
"""The most segments of a partition that may wait to be merged: enough for several merges."""


_URGENCY = {kind: index for index, kind in enumerate(ProblemKind)}


def find_problems(
    rows: Sequence[PartitionStatus],
    *,
    silent_managers: Mapping[int, str],
    silent_leaders: Mapping[TopicIdPartition, str],
    processes: Iterable[ProcessStatus] = (),
    transaction_max_ms: Mapping[int, int] | None = None,
    deleted_topics: Iterable[DeletedTopic] = (),
) -> tuple[Problem, ...]:
    """Return the problems of a cluster, the most urgent first, grouped by reason.

    `silent_managers` maps brokers whose managers did not answer to the reason. `silent_leaders`
    maps partitions whose leaders did not answer to the error. `transaction_max_ms` maps brokers to
    their transaction.max.timeout.ms, if known; Kafka's default is used for the others.
    """
    processes = tuple(processes)
    limits = transaction_max_ms or {}
    found = [
        *_of_deleted_topics(deleted_topics),
        *_of_managers(rows, silent_managers),
        *_of_dead_gateways(rows, processes),
        *_of_processes(rows, processes, silent_managers),
        *_of_differing_files(processes),
        *(
            problem
            for row in rows
            for problem in _of_partition(row, silent_managers, silent_leaders, limits)
        ),
    ]
    return tuple(sorted(_grouped(found), key=lambda each: _URGENCY[each.kind]))


def _grouped(problems: Iterable[Problem]) -> Iterator[Problem]:
    groups: dict[tuple[ProblemKind, str, str, str], list[TopicIdPartition]] = {}
    for each in problems:
        key = (each.kind, each.process, each.reason, each.command)
        groups.setdefault(key, []).extend(each.partitions)
    for (kind, process, reason, command), partitions in groups.items():
        yield Problem(
            kind=kind,
            process=process,
            reason=reason,
            command=command,
            partitions=tuple(partitions),
        )


def _of_deleted_topics(topics: Iterable[DeletedTopic]) -> Iterator[Problem]:
    """Yield a problem for each deleted topic. Its command never deletes data."""
    for each in topics:
        topic_id = id_to_text(each.topic_id)  # A new topic can have the same name.
        reason, command = (
            (
                (
                    f"no broker has a topic with id {topic_id}; "
                    "the deletion of its stored data is paused"
                ),
                f"rlm read {each.topic} --topic-id {topic_id} --from-store --json",
            )
            if each.is_paused
            else (
                f"no broker has a topic with id {topic_id}, so its stored data will be deleted",
                f"rlm pause {each.topic} delete --topic-id {topic_id}",
            )
        )
        yield Problem(
            kind=ProblemKind.TOPIC_DELETED,
            reason=reason,
            command=command,
            partitions=each.partitions,
        )


def _of_managers(
    rows: Sequence[PartitionStatus], silent_managers: Mapping[int, str]
) -> Iterator[Problem]:
    for broker_id, reason in silent_managers.items():
        yield Problem(
            kind=ProblemKind.MANAGER_SILENT,
            process=f"{MANAGER} of broker {broker_id}",
            reason=reason,
            command=_PROCESSES,
            partitions=tuple(
                row.topic_id_partition
                for row in rows
                if row.leader_id == broker_id and row.is_managed
            ),
        )


def _of_dead_gateways(
    rows: Sequence[PartitionStatus], processes: Iterable[ProcessStatus]
) -> Iterator[Problem]:
    """Yield a problem for each broker that leads partitions and has only dead gateways.

    A broker without any gateway is not a problem, because gateways are optional. Gateways that were
    asked to stop do not count.
    """
    gateways = [each for each in processes if each.role == GATEWAY and not each.is_stopped]
    live = {each.broker_id for each in gateways if each.is_live}
    for broker_id in sorted({each.broker_id for each in gateways} - live):
        led = tuple(
            row.topic_id_partition
            for row in rows
            if row.leader_id == broker_id and row.policy_state is not None
        )
        if led:
            yield Problem(
                kind=ProblemKind.GATEWAY_SILENT,
                process=f"{GATEWAY} of broker {broker_id}",
                reason="its heartbeats ended: clients cannot read stored data of these partitions "
                "through it",
                command=_PROCESSES,
                partitions=led,
            )


def _of_processes(
    rows: Sequence[PartitionStatus],
    processes: Iterable[ProcessStatus],
    silent_managers: Collection[int],
) -> Iterator[Problem]:
    """Yield a problem for each live process that is not ready, for example while it starts.

    Omits silent managers, which have a problem already. Omits the reason that copies fail if the
    partitions of that broker show it.
    """
    failing = {row.leader_id for row in rows if row.report is not None and _is_failing(row.report)}
    for each in processes:
        if each.role == BROKER or not each.is_live or each.is_ready is not False:
            continue
        if each.role == MANAGER and each.broker_id in silent_managers:
            continue
        is_shown = each.broker_id in failing
        reasons = [r for r in each.reasons if not (is_shown and r.startswith(COPIES_FAIL))]
        if reasons or not each.reasons:
            yield Problem(
                kind=ProblemKind.NOT_READY,
                process=_name(each),
                reason=f"not ready: {'; '.join(reasons) or 'it reports no reason'}",
                command=_PROCESSES,
            )


def _name(process: ProcessStatus) -> str:
    """Return the role and the broker; a gateway of the whole cluster has no broker."""
    if process.broker_id == NO_BROKER:
        return f"{process.role} of the cluster"
    return f"{process.role} of broker {process.broker_id}"


def _of_differing_files(processes: Iterable[ProcessStatus]) -> Iterator[Problem]:
    managers = (each for each in processes if each.role == MANAGER and each.is_live)
    for each in differing_files({each.broker_id: each.file_defaults for each in managers}):
        yield Problem(
            kind=ProblemKind.FILES_DIFFER,
            process=f"{MANAGER} of broker {each.broker_id}",
            reason=each.reason,
            command="rlm processes --json",
        )


def _is_failing(report: PartitionReport) -> bool:
    return report.copy_blocked is not None and report.copy_blocked.reason == FAILING


def _of_partition(
    row: PartitionStatus,
    silent_managers: Collection[int],
    silent_leaders: Mapping[TopicIdPartition, str],
    transaction_max_ms: Mapping[int, int],
) -> Iterator[Problem]:
    tip = row.topic_id_partition
    leader_id = -1 if row.leader_id is None else row.leader_id
    max_ms = transaction_max_ms.get(leader_id, DEFAULT_TRANSACTION_MAX_MS)
    for kind, reason, command in (
        *_damage(row),
        *_missing_answers(row, silent_managers, silent_leaders),
        *(() if row.report is None else _reported(row, row.report, max_ms)),
    ):
        yield Problem(kind=kind, reason=reason, command=command, partitions=(tip,))


_Found = tuple[ProblemKind, str, str]


def _damage(row: PartitionStatus) -> Iterator[_Found]:
    damaged = row.damage
    if not damaged:
        return
    tip, first = row.topic_id_partition, min(damaged, key=lambda each: each.first_ms)
    count = len({(each.segment, each.object_key) for each in damaged})
    more = f" and {count - 1} more" if count > 1 else ""
    yield (
        ProblemKind.DAMAGED_OBJECTS,
        f"a stored object is {first.kind.label}: {first.object_key}{more}",
        f"rlm explain {tip.topic}:{tip.partition} {row.damaged_from_offset}",
    )


def _missing_answers(
    row: PartitionStatus,
    silent_managers: Collection[int],
    silent_leaders: Mapping[TopicIdPartition, str],
) -> Iterator[_Found]:
    """Yield why a partition's leader, offsets or report are unknown."""
    tip, leader_id = row.topic_id_partition, row.leader_id
    if leader_id is None:
        yield ProblemKind.NO_LEADER, "no broker leads it", _PROCESSES
        return
    if tip in silent_leaders:
        reason = f"its leader, broker {leader_id}, does not answer: {silent_leaders[tip]}"
        yield ProblemKind.LEADER_SILENT, reason, _PROCESSES
    if row.report is None and row.is_managed and leader_id not in silent_managers:
        reason = (
            f"the manager of broker {leader_id} does not yet report the partition as led by that "
            "broker"
        )
        yield ProblemKind.NOT_REPORTED, reason, _PROCESSES


def _reported(
    row: PartitionStatus, report: PartitionReport, transaction_max_ms: int
) -> Iterator[_Found]:
    """Yield the problems that the leader's manager reports."""
    topic = row.topic_id_partition.topic
    resolve = f"rlm topic resolve {topic} --dry-run"
    if report.is_diverged:
        reason = "the broker's log no longer contains stored records: trims and deletions wait"
        yield ProblemKind.DIVERGED, reason, resolve
    if report.has_external_start:
        yield ProblemKind.EXTERNAL_START, "another program deleted records of the topic", resolve
    if report.repair_failure is not None:
        reason = f"repairs of damaged segments fail: {report.repair_failure.cause}"
        yield ProblemKind.REPAIRS_FAIL, reason, "rlm storage check"
    if report.problem:
        yield ProblemKind.NOT_EVALUATED, report.problem, _PROCESSES
    hanging = _hanging_transaction(topic, report, transaction_max_ms)
    if hanging is not None:
        yield hanging
    if report.stream is not None:
        yield from _merges(topic, report.stream)
    yield from _blocks(row, report, transaction_max_ms, has_hanging=hanging is not None)


def _hanging_transaction(
    topic: str, report: PartitionReport, transaction_max_ms: int
) -> _Found | None:
    """Return the problem if the coordinator should have aborted the oldest transaction by now."""
    open_ms = None if report.stream is None else report.stream.open_transaction_ms
    if open_ms is None or open_ms <= transaction_max_ms:
        return None
    reason = (
        "a transaction has been open for longer than transaction.max.timeout.ms="
        f"{transaction_max_ms}: no later record is stored"
    )
    command = f"kafka-transactions.sh find-hanging --topic {topic}"
    return ProblemKind.HANGING_TRANSACTION, reason, command


def _merges(topic: str, stream: StreamReport) -> Iterator[_Found]:
    """Yield why merges of the partition's small segments fail or are late."""
    if stream.merge_failure is not None:
        reason = f"merges of small streamed segments fail: {stream.merge_failure.cause}"
        yield ProblemKind.MERGES_FAIL, reason, "rlm storage check"
    if (stream.merge_waiting_segments or 0) > _MERGE_WAITING_SEGMENTS:
        reason = f"more than {_MERGE_WAITING_SEGMENTS} small streamed segments wait to be merged"
        yield ProblemKind.MERGES_LATE, reason, f"rlm segments list {topic}"


def _late_stream(topic: str, report: PartitionReport) -> _Found | None:
    """Return the problem if records have waited for much longer than the rollover time."""
    stream = report.stream
    if stream is None or stream.unstored_ms is None or stream.rollover_ms is None:
        return None
    if stream.unstored_ms <= stream.rollover_ms + _STREAM_LATE_MINUTES * 60_000:
        return None
    reason = (
        f"streamed records are not stored {_STREAM_LATE_MINUTES} minutes after their rollover time"
    )
    return ProblemKind.STREAM_LATE, reason, f"rlm offload-status {topic}"


def _blocks(
    row: PartitionStatus, report: PartitionReport, transaction_max_ms: int, *, has_hanging: bool
) -> Iterator[_Found]:
    """Yield what blocks the partition's work; except for pauses, yield each reason once."""
    shown = {"anomaly"} if row.damage else set()
    if has_hanging:
        shown.add("not_stable_yet")
    for kind, work, blocked in (
        (ProblemKind.COPY_BLOCKED, BlockedWork.COPY, report.copy_blocked),
        (ProblemKind.TRIM_BLOCKED, BlockedWork.TRIM, report.trim_blocked),
        (ProblemKind.EXPIRY_BLOCKED, BlockedWork.EXPIRY, report.expiry_blocked),
    ):
        if blocked is None or blocked.reason in shown:
            continue
        explained = explain_block(
            work,
            blocked,
            row.topic_id_partition,
            age_ms=report.oldest_unstored_age_ms,
            transaction_max_ms=transaction_max_ms,
        )
        if explained is not None:
            yield kind, explained.text, explained.command
            if blocked.reason != "paused":  # Each kind of work has its own pause.
                shown.add(blocked.reason)
    late = _late_stream(row.topic_id_partition.topic, report)
    if late is not None and report.copy_blocked is None:
        yield late
