"""Deletes the stored data of deleted topics, whatever the state of their policies.

    policy without its topic, for the whole grace period → its partitions, as the metadata knows
    them → each partition removed as rlm.policy.removal decides → policy purged

Each phase is recorded in the metadata before the next one starts. So a later run, or another
broker's manager, continues where the last one stopped. A new topic with the old name has another id
and is not affected. A pause of deletions stops the removal before the next segment and before the
next phase; a running deletion of a segment still finishes. The removal also stops if the topic is
found again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from functools import partial
from threading import Event
from uuid import UUID

from rlm.metrics.metrics import Metrics
from rlm.policy.peers.gateways import live_gateways
from rlm.policy.removal import PartitionRemains, RemovalPlan, plan_removal, removed_by
from rlm.policy.view import Moment
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.ports import Ports
from rlm.tasks.deleting.expirer import Expirer
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import TopicPolicy, topic_policies
from rlmm.events.registration import dated_registrations
from rlmm.state.partition_state import RemotePartitionDeleteState
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState, Writer

_log = logging.getLogger(__name__)

_FINISHED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
_PAUSES_READ_MS = 5_000

FindDeleted = Callable[[Mapping[UUID, str]], frozenset[UUID]]
"""Returns the ids of the topics that the cluster does not have. The argument maps ids to names.

Raises RetriableError if a live broker does not answer.
"""


class RemovalStatus(Enum):
    """Represents the progress of a removal: the label values of `rlm_deleted_topics`."""

    WAITING = "waiting"
    DELETING = "deleting"
    PAUSED = "paused"


class TopicRemoval:
    """Deletes the stored data and the records of deleted topics. Not thread-safe.

    Memory: one entry per missing topic.
    """

    def __init__(  # noqa: PLR0913 - one for each part of the work
        self,
        ports: Ports,
        *,
        find_deleted: FindDeleted,
        expirer: Expirer,
        lanes: Lanes,
        stopping: Event,
        incarnation: UUID,
        drop_originals: Callable[[str, UUID], None],
        metrics: Metrics,
        grace_ms: int,
        orphan_grace_ms: int,
    ) -> None:
        """Act on a topic only after it has been missing for `grace_ms`.

        `stopping` ends jobs of `lanes`. `drop_originals` deletes a topic's originals from the
        store, and is idempotent.
        """
        self._node_id = ports.broker.node_id
        self._source = ports.source
        self._storage = ports.storage
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._find_deleted = find_deleted
        self._expirer = expirer
        self._lanes = lanes
        self._stopping = stopping
        self._incarnation = incarnation
        self._drop_originals = drop_originals
        self._gauge = metrics.deleted_topics
        self._grace_ms = grace_ms
        self._orphan_grace_ms = orphan_grace_ms
        self._missing_since_ms: dict[UUID, int] = {}
        self._shown: set[tuple[str, str]] = set()
        self._log_once = LogOnce()

    def step(self) -> None:
        """Check once for deleted topics and start the removals that are due; wait for none.

        Raises RetriableError if the cluster does not answer, or the log dirs or the metadata cannot
        be read. Then no further topic counts as deleted.
        """
        policies = {policy.topic_id: policy for policy in topic_policies(self._metadata)}
        self._note_missing(policies)
        missing = [policies[topic_id] for topic_id in self._missing_since_ms]
        own = [policy for policy in missing if self._is_due_here(policy)]
        self._metadata.follow_topics([policy.topic_id for policy in own])
        for policy in own:
            try:
                self._remove(policy)
            except TieredStorageError as error:
                if self._log_once.changed((policy.topic_id, "waits"), error.message):
                    _log.info(
                        LogLine(
                            "removal of a deleted topic waits",
                            topic=policy.topic,
                            topic_id=policy.topic_id,
                            error=error,
                        )
                    )
            else:
                self._log_once.clear((policy.topic_id, "waits"))
        self._show(missing, {policy.topic_id for policy in own})

    def _note_missing(self, policies: Mapping[UUID, TopicPolicy]) -> None:
        """Record since when each topic has been missing in every check."""
        missing = self._find_deleted({each: policy.topic for each, policy in policies.items()})
        if missing:
            missing -= {tip.topic_id for tip in self._source.partitions()}
        now_ms = self._clock.monotonic_ms()
        for topic_id in missing - self._missing_since_ms.keys():
            _log.warning(
                LogLine(
                    "tiered topic was deleted: its stored data will be deleted",
                    advice="`rlm pause` prevents this",
                    topic=policies[topic_id].topic,
                    topic_id=topic_id,
                    grace_ms=self._grace_ms,
                )
            )
        self._missing_since_ms = {
            each: self._missing_since_ms.get(each, now_ms) for each in missing
        }
        self._log_once.retain(missing)

    def _is_confirmed(self, topic_id: UUID) -> bool:
        """Return whether the topic has been missing for the whole grace period."""
        since_ms = self._missing_since_ms[topic_id]
        return self._clock.monotonic_ms() - since_ms >= self._grace_ms

    def _is_due_here(self, policy: TopicPolicy) -> bool:
        """Return whether this manager must remove the topic now; False during a pause."""
        topic_id = policy.topic_id
        if not self._is_confirmed(topic_id):
            return False
        if self._is_paused(topic_id):
            if self._log_once.changed(topic_id, "paused"):
                _log.warning(
                    LogLine(
                        "removal of a deleted topic is paused: `rlm resume` continues it",
                        topic=policy.topic,
                        topic_id=topic_id,
                    )
                )
            return False
        self._log_once.clear(topic_id)
        registered, now_ms = dated_registrations(self._metadata)
        remover = removed_by(topic_id, registered, own_id=self._node_id, broker_ms=now_ms)
        return remover == self._node_id

    def _show(self, missing: Iterable[TopicPolicy], own: Collection[UUID]) -> None:
        """Set the gauge of each missing topic; remove the other gauges, so that alerts clear."""
        counts = Counter[tuple[str, str]]()
        for policy in missing:
            status = self._status_of(policy, is_own=policy.topic_id in own)
            if status is not None:
                counts[policy.topic, status.value] += 1
        for labels, count in counts.items():
            self._gauge.labels(*labels).set(count)
        for labels in self._shown - counts.keys():
            self._gauge.remove(*labels)
        self._shown = set(counts)

    def _status_of(self, policy: TopicPolicy, *, is_own: bool) -> RemovalStatus | None:
        """Return the status of a removal; None if another manager deletes or nothing is left."""
        if self._is_paused(policy.topic_id):
            return RemovalStatus.PAUSED
        if not self._is_confirmed(policy.topic_id):
            return RemovalStatus.WAITING
        return RemovalStatus.DELETING if is_own and self._is_undeleted(policy) else None

    def _is_undeleted(self, policy: TopicPolicy) -> bool:
        """Return whether a segment is not deleted yet; True if the metadata cannot be read now."""
        try:
            return any(
                any(self._metadata.list_remote_log_segments(tip))
                for tip in self._metadata.partitions_of(policy.topic_id, policy.topic)
            )
        except TieredStorageError:
            return True

    def _is_paused(self, topic_id: UUID) -> bool:
        return PausableTask.DELETE in paused_tasks(self._metadata, topic_id)

    def _may_continue(self, tip: TopicIdPartition) -> bool:
        # This needs no lock, because `step` replaces the dict as a whole.
        is_missing = tip.topic_id in self._missing_since_ms
        return is_missing and not self._stopping.is_set() and not self._is_paused(tip.topic_id)

    def _remove(self, policy: TopicPolicy) -> None:
        done = True
        for tip in self._metadata.partitions_of(policy.topic_id, policy.topic):
            if self._metadata.newer_record(tip) is not None:
                done = False  # A record of a newer version may forbid the removal.
            elif self._is_removed(tip):
                self._metadata.write_partition_tombstones(tip)
            else:
                done = False
                self._lanes.offer(tip, partial(self._carry_on, tip))
        if done:
            self._drop_originals(policy.topic, policy.topic_id)
            self._metadata.write_topic_tombstones(policy.topic_id)
            _log.info(
                LogLine(
                    "removed all stored data of a deleted topic",
                    topic=policy.topic,
                    topic_id=policy.topic_id,
                )
            )

    def _is_removed(self, tip: TopicIdPartition) -> bool:
        records = self._metadata.list_remote_log_segments(tip, states=tuple(SegmentState))
        finished = self._metadata.partition_state(tip).deletion is _FINISHED
        return finished and next(iter(records), None) is None

    def _carry_on(self, tip: TopicIdPartition) -> None:
        try:
            while self._may_continue(tip):
                if not self._metadata.is_cluster_current(timeout_ms=_PAUSES_READ_MS):
                    raise RetriableError(
                        "cannot find out whether deletions are paused: no pauses could be read"
                    )
                remains = self._remains(tip)
                may_continue = self._may_continue(tip)
                if not may_continue or not self._carry_out(tip, plan_removal(remains), remains):
                    return
        except TieredStorageError as error:
            # The partitions of a topic mostly fail with the same error. So the success of one
            # partition does not clear the logged error.
            if self._log_once.changed((tip.topic_id, "given up"), error.message):
                _log.warning(
                    LogLine(
                        "cannot remove a deleted partition: the next cycle retries",
                        topic_partition=tip,
                        error=error,
                    )
                )

    def _remains(self, tip: TopicIdPartition) -> PartitionRemains:
        # Leases that are read later are newer than this moment.
        moment = Moment(wall_ms=self._clock.wall_ms(), broker_ms=self._metadata.broker_time_ms())
        records = self._metadata.list_remote_log_segments(tip, states=tuple(SegmentState))
        state = self._metadata.partition_state(tip)
        epoch = 0 if state.owner is None else state.owner.leader_epoch
        return PartitionRemains(
            state=state,
            segments=tuple(records),
            writer=Writer(
                broker_id=self._node_id, leader_epoch=epoch, incarnation=self._incarnation
            ),
            moment=moment,
            orphan_grace_ms=self._orphan_grace_ms,
            gateways=live_gateways(*dated_registrations(self._metadata)),
        )

    def _carry_out(
        self, tip: TopicIdPartition, plan: RemovalPlan, remains: PartitionRemains
    ) -> bool:
        """Carry out a plan; return whether the next plan can follow at once."""
        if plan.should_claim:
            claim = LeadershipClaimed(
                event_id=self._new_id(),
                topic_id_partition=tip,
                writer=remains.writer,
                lineage=remains.state.lineage,
            )
            if not self._metadata.publish(claim).accepted:
                return False
        gone_count = 0
        for action in plan.deletions:
            if not self._may_continue(tip):
                return False
            gone_count += self._expirer.delete(action, remains.writer)
        for record in plan.sweeps:
            self._storage.delete_log_segment_data(record.metadata)
        if plan.next_state is not None:
            return self._enter(tip, plan.next_state)
        for record in plan.purges:
            self._metadata.write_tombstones(record.metadata.segment_id)
        return bool(plan.deletions) and gone_count == len(plan.deletions)

    def _enter(self, tip: TopicIdPartition, state: RemotePartitionDeleteState) -> bool:
        result = self._metadata.publish(
            RemotePartitionDeleteMetadata(
                event_id=self._new_id(),
                topic_id_partition=tip,
                state=state,
                event_timestamp_ms=self._clock.wall_ms(),
                broker_id=self._node_id,
            )
        )
        _log.info(
            LogLine(
                "recorded removal of a deleted partition",
                topic_partition=tip,
                state=state.name,
                accepted=result.accepted,
            )
        )
        return result.accepted
