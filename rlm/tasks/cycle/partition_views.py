"""Builds views of led partitions from the broker, its disk, the metadata and this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from rlm.broker.partition_results import PartitionResults
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.peers.gateways import live_gateways
from rlm.policy.view import Moment, PartitionView, PolicyLimits
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.leadership import Leadership
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.pause import paused_tasks
from rlmm.events.policy import TopicPolicy, topic_policies, topic_policy_position
from rlmm.events.registration import dated_registrations
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOutlook:
    """Represents what the manager knows before a cycle.

    `untierable` maps topic ids to the rules that forbid copying and trimming these topics.
    While the store is unreachable, a cycle neither copies nor deletes. It still measures lag and
    trims stored segments.
    """

    untierable: Mapping[UUID, str] = field(default_factory=dict)
    is_store_reachable: bool = True


class WritingLanes(Protocol):
    """Represents lanes of one kind that copy segments. Thread-safe."""

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """Return the ids of the segments that are being written for a partition."""


class PartitionViews:
    """Builds the views of led partitions. Thread-safe; only the cycle's thread sets `outlook`."""

    def __init__(
        self,
        ports: Ports,
        *,
        leadership: Leadership,
        lanes: Sequence[WritingLanes],
        limits: PolicyLimits,
    ) -> None:
        """Use `lanes`, all lanes that copy segments, to find the segments in flight."""
        self._broker = ports.broker
        self._source = ports.source
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._can_reuse = ports.storage.can_reuse_unfinished
        self._leadership = leadership
        self._lanes = lanes
        self._limits = limits
        self.outlook = CycleOutlook()

    def of_topic(self, topic: str, partition: int | None = None) -> tuple[PartitionView, ...]:
        """Return current views of the topic's led partitions; only of `partition` if it is given.

        Raises RetriableError if the broker does not answer, and any error that prevents a
        partition's view.
        """
        tasks = {
            task.topic_id_partition: task
            for task in self._leadership.led()
            if task.topic_id_partition.topic == topic
            and partition in (None, task.topic_id_partition.partition)
        }
        offsets = self._broker.offsets({tip: task.leader_epoch for tip, task in tasks.items()})
        policies = {policy.topic_id: policy for policy in topic_policies(self._metadata)}
        return tuple(
            self.of(task, policies[tip.topic_id], offsets)
            for tip, task in sorted(tasks.items())
            if tip.topic_id in policies
        )

    def of(
        self,
        task: PartitionTask,
        policy: TopicPolicy,
        offsets: PartitionResults[PartitionOffsets],
    ) -> PartitionView:
        """Return the view of a partition.

        `offsets` must be a fresh result of `Broker.offsets`. Raises the error that prevents the
        view.
        """
        tip = task.topic_id_partition
        if tip in offsets.failed:
            raise offsets.failed[tip]
        # Leases that are read later are newer than this moment.
        moment = Moment(wall_ms=self._clock.wall_ms(), broker_ms=self._metadata.broker_time_ms())
        # The lanes are read before and after the list of segments: a copy that starts or ends in
        # between must not look abandoned.
        in_flight_before = self._in_flight(tip)
        damage = task.damage
        policy_position = topic_policy_position(self._metadata, tip.topic_id)
        is_streamed = policy.effective_offload(self._limits.offload).mode is OffloadMode.STREAM
        segments = tuple(self._metadata.list_remote_log_segments(tip, states=tuple(SegmentState)))
        return PartitionView(
            topic_id_partition=tip,
            policy=policy,
            writer=task.lead.writer,
            offsets=offsets.succeeded[tip],
            in_flight=in_flight_before | self._in_flight(tip),
            damage=damage,
            deletion_requested=task.requested_deletions(policy_position),
            unsupported=frozenset(task.unsupported),
            local=self._source.local_log(tip),
            state=self._metadata.partition_state(tip),
            segments=segments,
            moment=moment,
            limits=self._limits,
            untierable=self.outlook.untierable.get(tip.topic_id),
            is_store_reachable=self.outlook.is_store_reachable,
            gateways=live_gateways(*dated_registrations(self._metadata)),
            policy_position=policy_position,
            newer=self._metadata.newer_record(tip),
            copy_failure=(task.stream_history if is_streamed else task.copying).failure,
            paused=paused_tasks(self._metadata, tip.topic_id),
            spent_streams=task.streaming.spent() if self._can_reuse else None,
        )

    def _in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        return frozenset().union(*(each.in_flight(tip) for each in self._lanes))
