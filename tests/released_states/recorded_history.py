"""What happens to the recorded cluster: every kind of event, every layout, every format of a batch.

A manager copies, trims, records a gap, expires, fails to delete and is killed in the middle of a
copy. Commands, gateways and jobs then publish what only they publish.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from rlm.topics.originals_mirror import OriginalsMirror, StoredOriginals
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rlmm.events.anomaly import AnomalyReported
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.event import Event
from rlmm.events.gaps import GapsRecorded
from rlmm.events.log_start import LogStartRequested
from rlmm.events.loss import LossAccepted
from rlmm.events.offload import OffloadRequested
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.policy import (
    CopyLagSince,
    OriginalConfig,
    OutagePolicy,
    PolicyState,
    TopicPolicy,
    TopicPolicyChanged,
)
from rlmm.events.read_lease import ReadLeaseTaken
from rlmm.events.registration import (
    AppliedPosition,
    ProcessReadiness,
    ProcessRegistered,
    ProcessRole,
)
from rlmm.events.secret import SECRET_BYTES, ClusterSecretSet, SigningSecret
from rlmm.events.segment import SegmentEvent
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import metadata_partition
from rlmm.spi import MetadataPosition
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.partition_state import RemotePartitionDeleteState
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.layout.originals import OriginalsKeys
from rsm.layout.raw import RawLayout
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange
from tests.released_states.recorded_cluster import (
    BlockProcess,
    RawProcess,
    RecordedCluster,
    publish,
)
from tests.released_states.written_logs import (
    ABORTING_PRODUCER,
    COMMITTING_PRODUCER,
    WrittenLog,
)

ORDERS_ID = UUID("6f1c2a5e-9d3b-4c07-8a61-0b5e7d1f2c34")
CLICKS_ID = UUID("a3d90b17-52fe-4e6c-b1c8-7f4ad2e96056")
INVOICES_ID = UUID("1e8b4f60-c7a2-49d5-9e33-d5a0861b7cf2")
ORDERS, ORDERS_1 = (
    TopicIdPartition(topic_id=ORDERS_ID, topic="orders", partition=number) for number in range(2)
)
CLICKS, CLICKS_1 = (
    TopicIdPartition(topic_id=CLICKS_ID, topic="clicks", partition=number) for number in range(2)
)
INVOICES = tuple(
    TopicIdPartition(topic_id=INVOICES_ID, topic="invoices.2025_q4", partition=number)
    for number in range(3)
)
LED = (ORDERS, ORDERS_1, CLICKS)
PARTITIONS = (*LED, CLICKS_1, *INVOICES)
_HOUR_MS = 3_600_000
_KEEP = TopicPolicy(
    topic="orders",
    topic_id=ORDERS_ID,
    state=PolicyState.ACTIVE,
    retention_ms=-1,
    retention_bytes=-1,
    local_retention_ms=0,
    originals=(
        OriginalConfig(name="retention.bytes", value=None),
        OriginalConfig(name="retention.ms", value="604800000"),
    ),
)
_EXPIRE = replace(_KEEP, topic="clicks", topic_id=CLICKS_ID, retention_ms=_HOUR_MS, originals=())
_COPIED = SegmentState.COPY_SEGMENT_FINISHED.name
_CODECS = tuple(CompressionType)


class RecordedHistory:
    """Takes a cluster through all of it."""

    def __init__(self, directory: Path) -> None:
        self.cluster = RecordedCluster(directory, LED)
        self.orders, self.legacy, self.clicks = (self.cluster.logs[tip] for tip in LED)
        self.orphans: tuple[OrphanDeadLetter, ...] = ()

    def happen(self) -> TopicBasedRemoteLogMetadataManager:
        """All of it. Returns the metadata, still open: what it wrote last is in RocksDB's log."""
        metadata = self.cluster.open_metadata()
        publish(metadata, *self._policies())
        metadata.close()
        for log in self.cluster.logs.values():
            log.elect(0)
        self._copy_as_they_are()
        self._copy_twice()
        self._lose_records_and_copy_in_blocks()
        self._expire()
        self._die_copying()
        metadata = self.cluster.open_metadata()
        publish(metadata, self._shed_records(metadata), *self._requests(), self._gateway())
        publish(metadata, *self._deletion_of_invoices())
        publish(metadata, *self._attempt_of_another_broker())
        self._leave_orphans(metadata)
        self._mirror_originals(metadata)
        return metadata

    def _policies(self) -> tuple[TopicPolicyChanged, ...]:
        """One of each state, and each value of each field."""
        others = (
            replace(
                _KEEP,
                topic=f"archive-{state.name.lower()}",
                topic_id=UUID(int=0xA0 + state.value, version=4),
                state=state,
                retention_ms=7 * 24 * _HOUR_MS,
                retention_bytes=1 << 40,
                local_retention_ms=-2,
                local_retention_bytes=1 << 30,
                delete_remote=state is PolicyState.DISABLED,
                copy_lag_ms=-1,
                copy_lag_bytes=1 << 20,
                outage_policy=OutagePolicy.SHED_OLDEST,
                copy_lag_since=CopyLagSince.ROLL,
                local_deletion_lag_ms=4 * _HOUR_MS,
            )
            for state in PolicyState
        )
        return tuple(
            TopicPolicyChanged(event_id=self.cluster.new_id(), policy=policy)
            for policy in (_KEEP, _EXPIRE, *others)
        )

    def _copy_as_they_are(self) -> None:
        """Layout raw: each codec, messages from before batches, transactions, an election."""
        for codec in _CODECS:
            self.orders.write(codec=codec)
        for _ in range(4):
            self.orders.write(12, value_bytes=200)
        self.orders.roll()
        for magic in (0, 1):
            self.legacy.write_legacy(3, magic=magic)
        self.legacy.roll()
        self.legacy.write(append_time=True)
        self.legacy.write(2, skips=5)
        self.legacy.roll()
        aborted_from, committed_from = _begin_transactions(self.orders)
        self.orders.elect(3)
        self.orders.write()
        self.orders.roll()
        _end_transactions(self.orders, aborted_from, committed_from)
        self.orders.roll()
        self.clicks.write(5)
        self.clicks.roll()
        self.clicks.write(5)
        self.clicks.roll()
        self.cluster.start(RawProcess)
        self.cluster.settle()

    def _copy_twice(self) -> None:
        """A manager dies when it has copied what is not rolled, and the next one copies it again.

        Deletions are paused, so that the objects stay. What the first one was about to publish
        arrives late, and two segments overlap.
        """
        self.cluster.start(RawProcess, idle_copy_ms=0)
        self.legacy.write(2)
        late = self.cluster.kill_before(_COPIED)
        self.legacy.write(2)
        self.legacy.roll()
        metadata = self.cluster.open_metadata()
        publish(metadata, self._paused(ORDERS, PausableTask.DELETE))
        metadata.close()
        self.cluster.start(RawProcess)
        self.cluster.settle()
        metadata = self.cluster.open_metadata()
        publish(metadata, late, self._paused(ORDERS))
        metadata.close()

    def _lose_records_and_copy_in_blocks(self) -> None:
        """Records go from the broker before they were copied; layout block_v1 from here on."""
        self.orders.write(4)
        self.orders.roll()
        self.orders.write()
        self.orders.replica.move_start(self.orders.replica.end_offset - 3)
        for epoch in (4, 6):
            self.orders.elect(epoch)
            for codec in _CODECS:
                self.orders.write(12, codec=codec, value_bytes=200)
            aborted_from, committed_from = _begin_transactions(self.orders)
            _end_transactions(self.orders, aborted_from, committed_from)
            self.orders.roll()
        self.legacy.elect(1)
        self.legacy.write(2)
        self.legacy.roll()
        self.cluster.start(BlockProcess)
        self.cluster.settle()

    def _expire(self) -> None:
        """Retention deletes one segment, and the store refuses to delete the other."""
        process = self.cluster.start(BlockProcess)
        self.cluster.clock.advance(2 * _HOUR_MS)
        self.clicks.write()
        self.clicks.roll()
        refused = next(process.ports.metadata.list_remote_log_segments(CLICKS)).metadata
        error = RetriableError("the store refuses")
        process.effects.refuse("delete .log", refused.objects[0].key, error)
        self.cluster.settle()

    def _die_copying(self) -> None:
        """An unclean election cuts off what is stored; the manager dies as it copies what follows.

        The objects are there then, and COPY_SEGMENT_FINISHED is not.
        """
        self.cluster.start(RawProcess)
        self.legacy.replica.truncate(self.legacy.replica.end_offset - 2)
        self.legacy.roll()
        self.legacy.elect(2)
        self.legacy.write()
        self.legacy.roll()
        self.cluster.kill_before(_COPIED)

    def _requests(self) -> Iterator[Event]:
        """What gateways publish for clients, commands for operators, and jobs for themselves."""
        new_id = self.cluster.new_id
        yield LogStartRequested(
            event_id=new_id(), topic_id_partition=ORDERS, offset=4, leader_epoch=6
        )
        yield OffloadRequested(event_id=new_id(), topic_id_partition=ORDERS, offset=40)
        yield LossAccepted(
            event_id=new_id(), topic_id_partition=ORDERS_1, leader_epoch=1, local_start_offset=3
        )
        yield from self._anomalies()
        yield ReadLeaseTaken(
            event_id=new_id(),
            lease_id=new_id(),
            topic_id_partition=ORDERS,
            offsets=OffsetRange(start_offset=3, end_offset=30),
            duration_ms=_HOUR_MS,
            holder="spark job 17",
        )
        yield self._paused(INVOICES[0], *PausableTask)
        yield self._paused(CLICKS, PausableTask.TRIM)
        yield ClusterSecretSet(
            event_id=new_id(), current=self._secret(b"c"), previous=self._secret(b"p")
        )

    def _anomalies(self) -> Iterator[AnomalyReported]:
        """A gateway reports one of each kind."""
        now_ms = self.cluster.clock.wall_ms()
        lost = (OffsetRange(start_offset=3, end_offset=7),)
        for kind in AnomalyKind:
            found = Anomaly(
                segment=self.cluster.new_id(),
                object_key=f"orders/{kind.label}.log",
                kind=kind,
                first_ms=now_ms - 60_000,
                last_ms=now_ms,
                attempts=7,
                lost=lost if kind is AnomalyKind.LOSS_ACCEPTED else (),
            )
            yield AnomalyReported(
                event_id=self.cluster.new_id(), topic_id_partition=ORDERS, anomaly=found
            )

    def _paused(self, tip: TopicIdPartition, *tasks: PausableTask) -> TopicPaused:
        """All that is paused of a partition's topic from now on."""
        return TopicPaused(
            event_id=self.cluster.new_id(),
            topic=tip.topic,
            topic_id=tip.topic_id,
            tasks=frozenset(tasks),
        )

    def _secret(self, byte: bytes) -> SigningSecret:
        return SigningSecret(secret_id=self.cluster.new_id(), key=byte * SECRET_BYTES)

    def _gateway(self) -> ProcessRegistered:
        """A gateway's heartbeat."""
        return ProcessRegistered(
            event_id=self.cluster.new_id(),
            process_id=self.cluster.new_id(),
            role=ProcessRole.GATEWAY,
            broker_id=1,
            http_address="127.0.0.1:8081",
            heartbeat_interval_ms=30_000,
            version="0",
            gateway_address="127.0.0.1:9192",
            applied=(
                AppliedPosition(partition=0, offset=12),
                AppliedPosition(partition=2, offset=7),
            ),
            boot_id="01234567-89ab-cdef-0123-456789abcdef",
            network_namespace="net:[4026531840]",
            broker_address="127.0.0.1:9092",
            readiness=ProcessReadiness.NOT_READY,
            unready_reasons=("the store cannot be reached",),
            incarnation=self.cluster.new_id(),
            serves_https=True,
        )

    def _shed_records(self, metadata: TopicBasedRemoteLogMetadataManager) -> GapsRecorded:
        """A leader gives up records that it could not store, an operator a segment."""
        owner = metadata.partition_state(ORDERS_1).owner
        assert owner is not None, "the manager has claimed it"
        shed = RecordedGap(
            offsets=OffsetRange(start_offset=23, end_offset=27),
            reason=GapReason.SHED,
            recorded_ms=self.cluster.clock.wall_ms(),
        )
        lost = RecordedGap(
            offsets=OffsetRange(start_offset=27, end_offset=29),
            reason=GapReason.ACCEPTED_LOSS,
            recorded_ms=self.cluster.clock.wall_ms(),
        )
        return GapsRecorded(
            event_id=self.cluster.new_id(),
            topic_id_partition=ORDERS_1,
            writer=owner,
            gaps=(shed, lost),
        )

    def _attempt_of_another_broker(self) -> tuple[LeadershipClaimed, SegmentEvent]:
        """It has begun to copy with a plugin's own metadata, and no object is there yet."""
        lineage = Lineage.of((5, 0))
        writer = Writer(broker_id=2, leader_epoch=5, incarnation=self.cluster.new_id())
        segment_id = RemoteLogSegmentId(topic_id_partition=CLICKS_1, id=self.cluster.new_id())
        offsets = OffsetRange(start_offset=0, end_offset=50)
        metadata = RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=offsets,
            max_timestamp_ms=self.cluster.clock.wall_ms(),
            segment_size_bytes=4_096,
            segment_leader_epochs=lineage.within(offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=writer,
            event_timestamp_ms=self.cluster.clock.wall_ms(),
            layout="raw",
            objects=RawLayout().plan(ObjectKeys(), segment_id, 0),
            custom_metadata=b"a plugin's own",
        )
        claim = LeadershipClaimed(
            event_id=self.cluster.new_id(),
            topic_id_partition=CLICKS_1,
            writer=writer,
            lineage=lineage,
        )
        started = SegmentEvent(
            event_id=self.cluster.new_id(), metadata=metadata, copy_timeout_ms=600_000
        )
        return claim, started

    def _deletion_of_invoices(self) -> tuple[RemotePartitionDeleteMetadata, ...]:
        """Each partition is one step further."""
        return tuple(
            RemotePartitionDeleteMetadata(
                event_id=self.cluster.new_id(),
                topic_id_partition=tip,
                state=state,
                event_timestamp_ms=self.cluster.clock.wall_ms(),
                broker_id=1,
            )
            for tip in INVOICES
            for state in tuple(RemotePartitionDeleteState)[: tip.partition + 1]
        )

    def _leave_orphans(self, metadata: TopicBasedRemoteLogMetadataManager) -> None:
        """Objects that no segment names, and letters that ask for their removal."""
        identity = metadata.identity
        assert identity is not None, "the metadata is ready"
        dead_letters, read_to = [], metadata_partition(ORDERS, identity.partition_count)
        for treatment in OrphanTreatment:
            key = ObjectKey(
                segment_id=RemoteLogSegmentId(topic_id_partition=ORDERS, id=self.cluster.new_id()),
                base_offset=0,
                suffix="log",
            )
            name, content = ObjectKeys().build(key), treatment.value.encode()
            self.cluster.objects.create_with_content(name, BytesSource(content=content))
            now_ms = self.cluster.clock.wall_ms()
            dead_letter = OrphanDeadLetter(
                object_key=name,
                length_bytes=len(content),
                last_modified_ms=now_ms - 4 * _HOUR_MS,
                first_seen_ms=now_ms - 2 * _HOUR_MS,
                last_seen_ms=now_ms - _HOUR_MS,
                treatment=treatment,
                read_to=MetadataPosition(
                    partition=read_to, offset=self.cluster.topic.end_offset(read_to)
                ),
                metadata_topic_id=identity.topic_id,
                reason="the store refuses",
                attempts=1,
                last_attempt_ms=now_ms,
            )
            dead_letters.append(dead_letter)
        self.orphans = tuple(dead_letters)

    def _mirror_originals(self, metadata: TopicBasedRemoteLogMetadataManager) -> None:
        stored = StoredOriginals(self.cluster.objects, OriginalsKeys())
        OriginalsMirror(stored, metadata=metadata, broker=self.cluster.broker).step()


def _begin_transactions(log: WrittenLog) -> tuple[int, int]:
    aborted_from = log.write(producer_id=ABORTING_PRODUCER)
    committed_from = log.write(codec=CompressionType.ZSTD, producer_id=COMMITTING_PRODUCER)
    return aborted_from, committed_from


def _end_transactions(log: WrittenLog, aborted_from: int, committed_from: int) -> None:
    log.write(producer_id=ABORTING_PRODUCER, codec=CompressionType.LZ4)
    log.end_transaction(ABORTING_PRODUCER, aborted_from, ControlType.ABORT)
    log.end_transaction(COMMITTING_PRODUCER, committed_from, ControlType.COMMIT)
    log.write()
