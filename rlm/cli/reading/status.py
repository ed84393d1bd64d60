"""`rlm status`: shows each tiered partition, by brokers, metadata and managers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rlm.broker.cluster import ClusterView, TopicView
from rlm.broker.cluster_offsets import fetch_cluster_offsets
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.named_topic import find_partition
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.invocation.times import iso_time
from rlm.cli.reading.manager_statuses import ask_managers
from rlm.policy.anomalies import anomalies_text
from rlm.policy.blocked import Blocked
from rlm.status.cluster_status import (
    LedPartition,
    PartitionMetadata,
    PartitionStatus,
    brokers_with_tiered_leaders,
    is_tiered,
    partition_status,
)
from rlmm.state.partition_state import ReadLease
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition

_ASK_THREADS = 8
_WIDE = 240  # columns of a table in a file or a pipe

_Name = Annotated[
    str | None,
    typer.Argument(metavar="TOPIC[:PARTITION]", help="All tiered topics by default."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status", epilog="Example: rlm status orders --json")(_status)


@with_cluster_options
def _status(
    name: _Name = None,
    *,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Show what is stored, what is local, and the copy lag.

    The managers report lag and trims. If a manager does not answer, the command prints why, and
    ends with exit code 1. Lag and trims of the partitions that its broker leads are then unknown.
    """
    warnings: list[str] = []
    settings = cluster.config
    named = None if name is None else PartitionName.parse(name)
    with open_session(settings, timeout_ms=cluster.timeout_ms) as session:
        with reaching_cluster(settings):
            view = session.bootstrap.view(_topics(session, named))
        if named is not None:
            find_partition(view, named)
        rows = _rows(session, view, named, warnings)
    with printing():
        if as_json:
            partitions = [row.to_json() for row in rows]
            document = {"cluster_id": session.cluster_id, "partitions": partitions}
            typer.echo(json.dumps(document, indent=2))
        else:
            Console(width=None if sys.stdout.isatty() else _WIDE, markup=False).print(_table(rows))
    _require_answers(warnings)


def _require_answers(warnings: Sequence[str]) -> None:
    """Raise RetriableError if managers did not respond; the reasons were printed before."""
    if warnings:
        raise RetriableError(
            "lag and trims of some partitions are unknown: managers do not answer",
            managers=len(warnings),
        )


def _topics(session: CommandSession, named: PartitionName | None) -> Sequence[str]:
    """Return the topics that the command may show."""
    if named is not None:
        return (named.topic,)
    return sorted({policy.topic for policy in session.metadata.topic_policies()})


def _rows(
    session: CommandSession,
    view: ClusterView,
    named: PartitionName | None,
    warnings: list[str],
) -> tuple[PartitionStatus, ...]:
    stored = {
        tip: _stored(session, tip)
        for topic in view.topics.values()
        for tip in _partitions_of(topic)
        if named is None or named.partition in (None, tip.partition)
    }
    if named is None:
        stored = {t: s for t, s in stored.items() if is_tiered(s.policy, s.segments)}
    with ThreadPoolExecutor(_ASK_THREADS, "status") as executor:
        leds = _led(session, view, stored, executor)
    with closing(manager_client(session)) as client:
        reports = ask_managers(
            session.metadata,
            _tiered(leds, stored),
            client=client,
            clock=session.clock,
            required=brokers_with_tiered_leaders(leds, stored),
            warn=warnings.append,
        )
    for line in warnings:
        _warn(line)
    return tuple(
        partition_status(
            led, stored[led.topic_id_partition], reports.get(led.topic_id_partition, {})
        )
        for led in sorted(leds, key=_by_name)
    )


def _stored(session: CommandSession, tip: TopicIdPartition) -> PartitionMetadata:
    state = session.metadata.partition_state(tip)
    return PartitionMetadata(
        policy=session.metadata.topic_policy(tip.topic_id),
        state=state,
        segments=tuple(session.metadata.list_remote_log_segments(tip)),
        leases=state.active_leases(session.metadata.broker_time_ms()),
    )


def _led(
    session: CommandSession,
    view: ClusterView,
    partitions: Iterable[TopicIdPartition],
    executor: Executor,
) -> tuple[LedPartition, ...]:
    wanted = tuple(partitions)
    results = fetch_cluster_offsets(session.bootstrap, view, wanted, executor)
    for tip, error in results.failed.items():
        _warn(f"{tip.topic}:{tip.partition}: its leader does not answer: {error}")
    rows = []
    for tip in wanted:
        shown = view.topics[tip.topic].partitions
        partition = next(each for each in shown if each.partition == tip.partition)
        rows.append(
            LedPartition(
                topic_id_partition=tip,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                offsets=results.succeeded.get(tip),
            )
        )
    return tuple(rows)


def _tiered(
    leds: Sequence[LedPartition], stored: Mapping[TopicIdPartition, PartitionMetadata]
) -> tuple[TopicIdPartition, ...]:
    """Return the partitions whose managers should return a report."""
    return tuple(
        led.topic_id_partition
        for led in leds
        if is_tiered(stored[led.topic_id_partition].policy, stored[led.topic_id_partition].segments)
    )


def _partitions_of(topic: TopicView) -> tuple[TopicIdPartition, ...]:
    return tuple(
        TopicIdPartition(topic_id=topic.topic_id, topic=topic.topic, partition=each.partition)
        for each in topic.partitions
    )


def _by_name(led: LedPartition) -> tuple[str, int]:
    return led.topic_id_partition.topic, led.topic_id_partition.partition


def _warn(line: str) -> None:
    typer.echo(f"rlm: {line}", err=True)


def _table(rows: Sequence[PartitionStatus]) -> Table:
    table = Table("topic", "partition", "state", "role", box=None, pad_edge=False)
    for name in ("epoch", "log start", "local start", "last tiered", "pending", "LSO", "HW"):
        table.add_column(name, justify="right")
    for name in ("lag segments", "lag bytes", "remote segments", "remote bytes"):
        table.add_column(name, justify="right")
    table.add_column("copy blocked")
    table.add_column("trim blocked")
    table.add_column("anomalies")
    table.add_column("read leases")
    for row in rows:
        tip, report = row.topic_id_partition, row.report
        numbers = (
            row.leader_epoch,
            row.log_start_offset,
            row.local_start_offset,
            row.last_tiered_offset,
            row.pending_upload_offset,
            row.last_stable_offset,
            row.high_watermark,
            None if report is None else report.lag_segments,
            None if report is None else report.lag_bytes,
            row.remote_segments,
            row.remote_bytes,
        )
        table.add_row(
            tip.topic,
            str(tip.partition),
            row.policy_state or "-",
            row.role or "-",
            *("?" if number is None else str(number) for number in numbers),
            blocked_text(None if report is None else report.copy_blocked),
            blocked_text(None if report is None else report.trim_blocked),
            anomalies_text(row.anomalies),
            _leases_text(row.leases),
        )
    return table


def blocked_text(blocked: Blocked | None) -> str:
    """Format what blocks a copy or a trim: the reason and its cause."""
    if blocked is None:
        return ""
    return ": ".join(str(text) for text in (blocked.reason, blocked.values.get("cause")) if text)


def _leases_text(leases: Sequence[ReadLease]) -> str:
    """Format the lease that expires last, with its holder, and the number of others."""
    if not leases:
        return ""
    last = max(leases, key=lambda lease: lease.expires_ms)
    more = f" and {len(leases) - 1} more" if len(leases) > 1 else ""
    return f"{last.holder} until {iso_time(last.expires_ms)}{more}"
