"""Reads the status of the cluster from its three sources: brokers, metadata and managers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from uuid import UUID

from rlm.broker.broker_configs import read_transaction_max_timeout_ms
from rlm.broker.cluster import ClusterView, TopicView
from rlm.broker.cluster_offsets import fetch_cluster_offsets
from rlm.broker.topics.deleted_topics import find_deleted_topics
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.session import CommandSession
from rlm.cli.reading.manager_statuses import ask_managers
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.status.attention import find_problems
from rlm.status.cluster_processes import ProcessStatus, cluster_processes
from rlm.status.cluster_status import (
    DeletedTopic,
    LedPartition,
    PartitionMetadata,
    PartitionStatus,
    brokers_with_tiered_leaders,
    is_tiered,
    partition_status,
)
from rlm.status.problem import Problem
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import topic_policies, topic_policy
from rlmm.events.registration import registrations
from rlmm.registration import now_of
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """Represents the partitions of a cluster at one time, and what needs attention.

    `silent_managers` maps broker ids to reasons, and `silent_leaders` maps partitions to errors.
    """

    rows: tuple[PartitionStatus, ...]
    problems: tuple[Problem, ...]
    silent_managers: Mapping[int, str]
    silent_leaders: Mapping[TopicIdPartition, str]


def shown_topics(session: CommandSession, named: PartitionName | None) -> Sequence[str]:
    """Return the named topic; if none is named, all topics that have a policy."""
    if named is not None:
        return (named.topic,)
    return sorted({policy.topic for policy in topic_policies(session.metadata)})


def read_cluster(
    session: CommandSession, view: ClusterView, named: PartitionName | None
) -> ClusterStatus:
    """Ask leaders and managers once; report those that do not answer among the problems."""
    stored = {
        tip: _stored(session, tip)
        for topic in view.topics.values()
        for tip in _partitions_of(topic)
        if named is None or named.partition in (None, tip.partition)
    }
    if named is None:
        stored = {t: s for t, s in stored.items() if is_tiered(s.policy, s.segments)}
    results = fetch_cluster_offsets(session.bootstrap, view, stored)
    leds = _led(view, stored, results.succeeded)
    with closing(manager_client(session)) as client:
        answers = ask_managers(
            session.metadata,
            _tiered(leds, stored),
            client=client,
            clock=session.clock,
            required=brokers_with_tiered_leaders(leds, stored),
        )
    rows = tuple(
        partition_status(
            led,
            stored[led.topic_id_partition],
            answers.reports.get(led.topic_id_partition, {}),
        )
        for led in sorted(leds, key=_by_name)
    )
    silent_leaders = {tip: str(error) for tip, error in results.failed.items()}
    return ClusterStatus(
        rows=rows,
        problems=find_problems(
            rows,
            silent_managers=answers.silent,
            silent_leaders=silent_leaders,
            processes=_processes(session, view, None if named is None else leds),
            transaction_max_ms=_transaction_limits(session, view, rows),
            deleted_topics=deleted_topics(session, named),
        ),
        silent_managers=answers.silent,
        silent_leaders=silent_leaders,
    )


def deleted_topics(
    session: CommandSession, named: PartitionName | None
) -> tuple[DeletedTopic, ...]:
    """Return the deleted topics with stored data; none if a broker does not answer.

    Managers do not delete the data of deleted topics in that case, either.
    """
    shown = set(shown_topics(session, named))
    policies = {
        each.topic_id: each.topic
        for each in topic_policies(session.metadata)
        if each.topic in shown
    }
    try:
        missing = find_deleted_topics(session.bootstrap, policies, cluster_id=session.cluster_id)
    except TieredStorageError:
        return ()
    found = (
        DeletedTopic(
            topic_id=topic_id,
            topic=policies[topic_id],
            partitions=_undeleted(session, topic_id, policies[topic_id]),
            is_paused=PausableTask.DELETE in paused_tasks(session.metadata, topic_id),
        )
        for topic_id in sorted(missing, key=lambda each: (policies[each], each))
    )
    return tuple(each for each in found if each.partitions)


def _undeleted(session: CommandSession, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
    """Return the partitions with segments that are not deleted yet."""
    return tuple(
        tip
        for tip in session.metadata.partitions_of(topic_id, topic)
        if any(session.metadata.list_remote_log_segments(tip))
    )


def _transaction_limits(
    session: CommandSession, view: ClusterView, rows: Iterable[PartitionStatus]
) -> Mapping[int, int]:
    """Return `transaction.max.timeout.ms` of the brokers where a transaction may delay copies.

    Omits brokers that do not answer or do not permit the read.
    """
    found: dict[int, int] = {}
    waiting = [row for row in rows if _may_wait_for_transaction(row)]
    for each in {row.leader_id for row in waiting if row.leader_id is not None}:
        with suppress(TieredStorageError), session.bootstrap.at(view.broker(each)) as broker:
            found[each] = read_transaction_max_timeout_ms(broker, each)
    return found


def _may_wait_for_transaction(row: PartitionStatus) -> bool:
    if row.report is None:
        return False
    stream, blocked = row.report.stream, row.report.copy_blocked
    is_open = stream is not None and stream.open_transaction_ms is not None
    return is_open or (blocked is not None and blocked.reason == "not_stable_yet")


def _processes(
    session: CommandSession, view: ClusterView, leds: Sequence[LedPartition] | None
) -> tuple[ProcessStatus, ...]:
    """Return the processes of the cluster, or of the brokers that lead these partitions."""
    found = cluster_processes(
        {each.node_id: str(each) for each in view.brokers.values()},
        registrations(session.metadata),
        now_ms=now_of(session.metadata.broker_time_ms(), session.clock.wall_ms()),
    )
    if leds is None:
        return found
    leaders = {led.leader_id for led in leds}
    return tuple(each for each in found if each.broker_id in leaders)


def _stored(session: CommandSession, tip: TopicIdPartition) -> PartitionMetadata:
    state = session.metadata.partition_state(tip)
    return PartitionMetadata(
        policy=topic_policy(session.metadata, tip.topic_id),
        state=state,
        segments=tuple(session.metadata.list_remote_log_segments(tip)),
        leases=state.active_leases(session.metadata.broker_time_ms()),
    )


def _led(
    view: ClusterView,
    partitions: Iterable[TopicIdPartition],
    offsets: Mapping[TopicIdPartition, PartitionOffsets],
) -> tuple[LedPartition, ...]:
    shown = {
        (name, each.partition): each
        for name, topic in view.topics.items()
        for each in topic.partitions
    }
    return tuple(
        LedPartition(
            topic_id_partition=tip,
            leader_id=shown[tip.topic, tip.partition].leader_id,
            leader_epoch=shown[tip.topic, tip.partition].leader_epoch,
            offsets=offsets.get(tip),
        )
        for tip in partitions
    )


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
