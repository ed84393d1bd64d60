"""Simulated managers that lack one guard each, and the rule that each guard enforces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar, cast
from uuid import UUID

from rlm.broker.partition_results import PartitionResults
from rlm.broker.spi import RecordDeletion
from rlm.policy.plan import DeleteSegment
from rlm.policy.removal import PartitionRemains, RemovalPlan
from rlm.policy.view import Damage
from rlm.tasks.context.ports import Ports
from rlm.tasks.deleting.topic_removal import TopicRemoval
from rlm.tasks.integrity.anomaly_check import AnomalyCheck
from rlm.tasks.integrity.damage_proof import DamageProof
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cached_answers import CachedAnswers
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.event import Event
from rlmm.events.gaps import GapsRecorded
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.events.log_start import LogStartAdvanced
from rlmm.events.policy import OutagePolicy, TopicPolicy
from rlmm.events.rows import ClusterRows
from rlmm.events.segment import SegmentEvent
from rlmm.known_writes import KnownWrites
from rlmm.manager import ManagerSettings
from rlmm.spi import PublishResult
from rlmm.state.partition_state import PartitionState
from rlmm.topic.event_topic import EventTopic
from rsm.segment.clock import Clock
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange
from rsm.spi import ObjectFault
from tests.fakes.broker import MemoryBroker
from tests.fakes.process import FakeSystems, ProcessSettings
from tests.fakes.share_groups import MemoryShareGroups
from tests.fakes.unguarded import (
    ExpectsAnything,
    UnfinishedCounts,
    ViewedMetadata,
    WithoutConfirmation,
    WithoutTrimOnRecord,
)
from tests.simulation.processes import LaggingMetadata, SimulatedProcess

V = TypeVar("V")

_NEVER_MS = 1 << 40


class _Unfinished(UnfinishedCounts, LaggingMetadata):
    pass


class _Holes(ViewedMetadata, LaggingMetadata):
    """Counts everything below the furthest stored end as stored, even if offsets are missing."""

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        below = OffsetRange(start_offset=0, end_offset=metadata.offsets.start_offset)
        lineage = self.partition_state(metadata.topic_id_partition).lineage
        older = lineage.within(below).entries
        own = metadata.segment_leader_epochs.entries
        if older and own[0].epoch < older[-1].epoch:
            return metadata
        joined = (*older, *(e for e in own if not older or e.epoch > older[-1].epoch))
        return replace(
            metadata,
            offsets=OffsetRange(start_offset=0, end_offset=metadata.offsets.end_offset),
            segment_leader_epochs=Lineage(entries=joined),
        )


class _Forgetful(LaggingMetadata):
    """Assumes that a write without an answer failed."""

    def __init__(
        self,
        topic: EventTopic,
        cache: MetadataCache,
        clock: Clock,
        settings: ManagerSettings | None = None,
    ) -> None:
        super().__init__(topic, cache, clock, settings)
        self._writes = _Blind(topic, self._read_past)


class _Blind(KnownWrites):
    def settle(self, partition: int) -> None:
        """Read nothing."""


class _Anything(ExpectsAnything, LaggingMetadata):
    pass


class _AnyLineage(ViewedMetadata, LaggingMetadata):
    """Counts every finished segment, even one of another history."""

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        lineage = self.partition_state(metadata.topic_id_partition).lineage
        epochs = lineage.within(metadata.offsets)
        return replace(metadata, segment_leader_epochs=epochs) if epochs.entries else metadata


class _Unfenced(LaggingMetadata):
    """Assumes that it is the owner, and decides in the real owner's name."""

    own: Writer | None = None

    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        state = super().partition_state(topic_id_partition)
        return state if self.own is None else replace(state, owner=self.own)

    def publish(self, event: Event) -> PublishResult:
        match event:
            case LeadershipClaimed():
                self.own = event.writer
            case LocalLogTrimmed() | LogStartAdvanced():
                writer = self._owner(event.topic_id_partition, event.writer)
                event = replace(event, writer=writer)
            case SegmentEvent() if event.metadata.state is SegmentState.DELETE_SEGMENT_STARTED:
                metadata = event.metadata
                writer = self._owner(metadata.topic_id_partition, metadata.writer)
                event = replace(event, metadata=replace(metadata, writer=writer))
        return super().publish(event)

    def _owner(self, tip: TopicIdPartition, writer: Writer) -> Writer:
        self.caught_up(tip)
        return super().partition_state(tip).owner or writer


class _NoDeadline(LaggingMetadata):
    """Lets copies finish at any time."""

    def publish(self, event: Event) -> PublishResult:
        if isinstance(event, SegmentEvent):
            event = replace(event, copy_timeout_ms=0, copy_deadline_ms=0)
        return super().publish(event)


class _Unleased(LaggingMetadata):
    """Ignores read leases."""

    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        return replace(super().partition_state(topic_id_partition), read_leases=())


class _Gapless(LaggingMetadata):
    """Records no gap."""

    def publish(self, event: Event) -> PublishResult:
        if isinstance(event, GapsRecorded):
            return PublishResult(refusal=None, append_time_ms=0)
        return super().publish(event)


class _Shedding(LaggingMetadata):
    """Treats every topic as one with the outage policy shed."""

    def cluster_values(self, rows: ClusterRows[V]) -> tuple[V, ...]:
        return tuple(map(self._shedding, super().cluster_values(rows)))

    def _shedding(self, value: V) -> V:
        if not isinstance(value, TopicPolicy):
            return value
        return cast("V", replace(value, outage_policy=OutagePolicy.SHED_OLDEST))


class _Credulous(AnomalyCheck):
    """Believes reports of damage, without its own check."""

    def _faults(self, metadata: RemoteLogSegmentMetadata, *, read: bool) -> tuple[ObjectFault, ...]:
        anomalies = self._metadata.partition_state(metadata.topic_id_partition).anomalies
        return tuple(
            ObjectFault(object_key=each.object_key, is_missing=True, reason="reported")
            for each in anomalies
            if each.segment == metadata.segment_id.id
        )


class _Hurried(AnomalyCheck):
    """Assumes that a damaged segment is replaced."""

    def _found(self, task: PartitionTask) -> Damage:
        found = super()._found(task)
        return replace(found, whole=found.whole | found.damaged)


class _Trusting(DamageProof):
    """Deletes by the result of an earlier check."""

    def require(self, action: DeleteSegment) -> None:
        del action


class _PartOfTopic(LaggingMetadata):
    """Assumes that the partitions that it knows are all partitions."""

    def partitions_of(self, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
        return CachedAnswers.partitions_of(self, topic_id, topic)


class _OneSweep(ViewedMetadata, LaggingMetadata):
    """Assumes that a deleted copy had finished, so that nobody writes its objects any more."""

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        if metadata.state is not SegmentState.DELETE_SEGMENT_FINISHED:
            return metadata
        objects = tuple(replace(each, length_bytes=0, crc32c=0) for each in metadata.objects)
        return replace(metadata, objects=objects)


class _Unswept(TopicRemoval):
    def _carry_out(
        self, tip: TopicIdPartition, plan: RemovalPlan, remains: PartitionRemains
    ) -> bool:
        return super()._carry_out(tip, replace(plan, sweeps=()), remains)


class _Hasty(TopicRemoval):
    """Assumes that every copy's deadline has passed."""

    def _remains(self, tip: TopicIdPartition) -> PartitionRemains:
        remains = super()._remains(tip)
        segments = tuple(replace(each, copy_deadline_ms=0) for each in remains.segments)
        return replace(remains, segments=segments)


class _EpochlessBroker(MemoryBroker):
    """Deletes records without checking the leader epoch first; only a follower refuses."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__(broker.node_id, broker._replicas)

    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        led = self.leadership()
        return super().delete_records(
            {
                tip: replace(deletion, leader_epoch=led.get(tip, deletion.leader_epoch))
                for tip, deletion in deletions.items()
            }
        )


class WithUnfinishedCounting(SimulatedProcess):
    """The trim gate: only a finished copy counts as stored."""

    metadata_type = _Unfinished


class WithHolesCounting(SimulatedProcess):
    """The trim gate: the stored range has no hole."""

    metadata_type = _Holes


class WithAnyLineage(SimulatedProcess):
    """The trim gate: a stored segment counts only as far as the log's lineage agrees."""

    metadata_type = _AnyLineage


class WithoutIncarnation(SimulatedProcess):
    """R7: a claim names the run of the process that made it."""

    def make_incarnation(self, external: FakeSystems) -> UUID:
        return UUID(int=external.broker.node_id)


class WithoutFencing(SimulatedProcess):
    """Decisions are refused to a writer whose claim is not the newest."""

    metadata_type = _Unfenced


class WithoutExpectedState(SimulatedProcess):
    """R7: a deletion names the segment's state at the time of the decision."""

    metadata_type = _Anything


class WithoutReadingPast(SimulatedProcess):
    """R13: before another decision or write, the process looks for a write without an answer."""

    metadata_type = _Forgetful


class WithoutDeadline(SimulatedProcess):
    """R11: an attempt ends at its deadline, and the fold refuses a later end."""

    metadata_type = _NoDeadline

    def __init__(
        self, external: FakeSystems, settings: ProcessSettings, witness: Callable[..., None]
    ) -> None:
        super().__init__(external, replace(settings, attempt_timeout_ms=_NEVER_MS), witness)


class WithoutEpochCheck(WithoutConfirmation, SimulatedProcess):
    """R1: the broker and the claim are checked again a moment before the cut."""

    def _make_ports(self, external: FakeSystems) -> Ports:
        assert isinstance(external.broker, MemoryBroker)
        return super()._make_ports(replace(external, broker=_EpochlessBroker(external.broker)))


class WithoutSecondSweep(SimulatedProcess):
    """An unfinished copy is deleted once more when nobody can write it any longer."""

    metadata_type = _OneSweep


class WithoutRemovalSweep(SimulatedProcess):
    """A late copy of a deleted topic is deleted once more when its time to write is over."""

    removal_type = _Unswept


class WithoutRemovalWait(SimulatedProcess):
    """A deleted topic's last sweep waits for every copy's deadline."""

    removal_type = _Hasty


class WithoutRecord(WithoutTrimOnRecord, SimulatedProcess):
    """R2, D2: a trim is recorded with the lineage before the cut."""


class WithoutLeases(SimulatedProcess):
    """R13: leased data stays until the lease expires."""

    metadata_type = _Unleased


class WithoutShareGroups(SimulatedProcess):
    """R8: records that a share group has not finished are not trimmed."""

    def _make_ports(self, external: FakeSystems) -> Ports:
        return super()._make_ports(replace(external, share_groups=MemoryShareGroups()))


class WithoutGaps(SimulatedProcess):
    """R6: a gap records what was lost before it was stored."""

    metadata_type = _Gapless


class WithoutWholeTopic(SimulatedProcess):
    """Only a manager that knows all partitions of a deleted topic forgets the topic."""

    metadata_type = _PartOfTopic


class WithoutHold(SimulatedProcess):
    """R6: only topics whose outage policy is shed lose unstored data."""

    metadata_type = _Shedding


class WithoutOwnLook(SimulatedProcess):
    """A report alone replaces nothing: the manager checks the objects itself."""

    def make_anomaly_check(self) -> AnomalyCheck:
        return _Credulous(self.ports, led=self.leadership.led, stopping=self.stopping)


class WithoutReplacement(SimulatedProcess):
    """A damaged segment is deleted only when whole ones have its records."""

    def make_anomaly_check(self) -> AnomalyCheck:
        return _Hurried(self.ports, led=self.leadership.led, stopping=self.stopping)

    def make_proof(self) -> DamageProof:
        return _Trusting(self.ports, self.stopping)
