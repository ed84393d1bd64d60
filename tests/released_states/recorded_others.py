"""Builds events that no manager's cycle publishes: of commands, gateways, jobs, another broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rlmm.events.anomaly import AnomalyReported
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.event import Event
from rlmm.events.log_start import LogStartRequested
from rlmm.events.loss import LossAccepted
from rlmm.events.offload import OffloadRequested
from rlmm.events.offload_segment import OffloadSegmentChanged
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.read_lease import ReadLeaseTaken
from rlmm.events.registration import (
    AppliedPosition,
    FileDefault,
    ProcessReadiness,
    ProcessRegistered,
    ProcessRole,
)
from rlmm.events.secret import SECRET_BYTES, ClusterSecretSet, SigningSecret
from rlmm.events.segment import SegmentEvent
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.offload_segments import (
    DriverProperty,
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rlmm.state.partition_state import RemotePartitionDeleteState
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange
from tests.released_states.recorded_cluster import RecordedCluster
from tests.released_states.recorded_partitions import CLICKS, CLICKS_1, INVOICES, ORDERS, ORDERS_1
from tests.released_states.recorded_policies import policy_levels

_HOUR_MS = 3_600_000


class RecordedOthers:
    """Builds the events, with ids and times of the cluster."""

    def __init__(self, cluster: RecordedCluster) -> None:
        self._cluster = cluster

    def requests(self) -> Iterator[Event]:
        """Yield the requests of gateways, of commands, and of jobs."""
        new_id = self._cluster.new_id
        yield LogStartRequested(
            event_id=new_id(), topic_id_partition=ORDERS, offset=4, leader_epoch=6
        )
        yield OffloadRequested(event_id=new_id(), topic_id_partition=ORDERS, offset=40)
        yield LossAccepted(
            event_id=new_id(), topic_id_partition=ORDERS_1, leader_epoch=1, local_start_offset=3
        )
        yield from self._anomalies()
        yield from self._offload_segments()
        yield ReadLeaseTaken(
            event_id=new_id(),
            lease_id=new_id(),
            topic_id_partition=ORDERS,
            offsets=OffsetRange(start_offset=3, end_offset=30),
            duration_ms=_HOUR_MS,
            holder="spark job 17",
        )
        yield self.paused(INVOICES[0], *PausableTask)
        yield self.paused(CLICKS, PausableTask.TRIM)
        yield from policy_levels(new_id)
        yield ClusterSecretSet(
            event_id=new_id(), current=self._secret(b"c"), previous=self._secret(b"p")
        )

    def _anomalies(self) -> Iterator[AnomalyReported]:
        """Yield a gateway's report of an anomaly of each kind."""
        now_ms = self._cluster.clock.wall_ms()
        lost = (OffsetRange(start_offset=3, end_offset=7),)
        for kind in AnomalyKind:
            found = Anomaly(
                segment=self._cluster.new_id(),
                object_key=f"orders/{kind.label}.log",
                kind=kind,
                first_ms=now_ms - 60_000,
                last_ms=now_ms,
                attempts=7,
                lost=lost if kind is AnomalyKind.LOSS_ACCEPTED else (),
            )
            yield AnomalyReported(
                event_id=self._cluster.new_id(), topic_id_partition=ORDERS, anomaly=found
            )

    def _offload_segments(self) -> Iterator[OffloadSegmentChanged]:
        """Yield an offload segment in each status."""
        now_ms = self._cluster.clock.wall_ms()
        for status in OffloadSegmentStatus:
            segment_id = self._cluster.new_id()
            begin = OffloadPosition(ledger_id=3, entry_id=status.value, offset=9 * status.value)
            is_offloaded = status is OffloadSegmentStatus.OFFLOADED
            segment = OffloadSegmentRecord(
                id=segment_id,
                status=status,
                writer=Writer(broker_id=1, leader_epoch=6, incarnation=self._cluster.new_id()),
                assigned_ms=now_ms - 60_000,
                begin=begin,
                segment_ids=(segment_id,),
                driver_metadata=(DriverProperty(name="bucket", value="tier"),),
                objects=("orders/0/9.log.{00000..00002}", "orders/0/9.meta"),
                offloaded_ms=now_ms if is_offloaded else None,
                end=replace(begin, entry_id=9, offset=50) if is_offloaded else None,
            )
            yield OffloadSegmentChanged(
                event_id=self._cluster.new_id(), topic_id_partition=ORDERS, segment=segment
            )

    def paused(self, tip: TopicIdPartition, *tasks: PausableTask) -> TopicPaused:
        """Return the event that pauses tasks of a partition's topic."""
        return TopicPaused(
            event_id=self._cluster.new_id(),
            topic=tip.topic,
            topic_id=tip.topic_id,
            tasks=frozenset(tasks),
        )

    def _secret(self, byte: bytes) -> SigningSecret:
        return SigningSecret(secret_id=self._cluster.new_id(), key=byte * SECRET_BYTES)

    def gateway(self) -> ProcessRegistered:
        """Return a gateway's heartbeat."""
        return ProcessRegistered(
            event_id=self._cluster.new_id(),
            process_id=self._cluster.new_id(),
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
            incarnation=self._cluster.new_id(),
            serves_https=True,
            file_defaults=(
                FileDefault(key="offload.mode", value="stream"),
                FileDefault(key="log.retention.ms", value=None),
            ),
        )

    def stopped_gateway(self) -> ProcessRegistered:
        """Return another gateway's last record."""
        return replace(
            self.gateway(),
            broker_id=2,
            gateway_address="127.0.0.1:9193",
            readiness=ProcessReadiness.STOPPED,
            unready_reasons=(),
        )

    def attempts_of_another_broker(self) -> tuple[Event, ...]:
        """Return a claim, and the starts of a copy and of a stream that have no objects.

        The copy has a plug-in's custom metadata.
        """
        lineage = Lineage.of((5, 0))
        writer = Writer(broker_id=2, leader_epoch=5, incarnation=self._cluster.new_id())
        segment_id = RemoteLogSegmentId(topic_id_partition=CLICKS_1, id=self._cluster.new_id())
        offsets = OffsetRange(start_offset=0, end_offset=50)
        metadata = RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=offsets,
            max_timestamp_ms=self._cluster.clock.wall_ms(),
            segment_size_bytes=4_096,
            segment_leader_epochs=lineage.within(offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=writer,
            event_timestamp_ms=self._cluster.clock.wall_ms(),
            layout="raw",
            objects=RawLayout().plan(ObjectKeys(), segment_id, 0, log_bytes=0),
            custom_metadata=b"a plugin's own",
        )
        claim = LeadershipClaimed(
            event_id=self._cluster.new_id(),
            topic_id_partition=CLICKS_1,
            writer=writer,
            lineage=lineage,
        )
        started = SegmentEvent(
            event_id=self._cluster.new_id(), metadata=metadata, copy_timeout_ms=600_000
        )
        stream_id = RemoteLogSegmentId(topic_id_partition=CLICKS_1, id=self._cluster.new_id())
        opened = replace(
            metadata,
            segment_id=stream_id,
            offsets=OffsetRange(start_offset=50, end_offset=51),
            segment_leader_epochs=Lineage.of((5, 50)),
            segment_size_bytes=0,
            objects=RawLayout().plan(ObjectKeys(), stream_id, 50, log_bytes=0),
            custom_metadata=b"",
            is_open=True,
        )
        return claim, started, replace(started, event_id=self._cluster.new_id(), metadata=opened)

    def deletion_of_invoices(self) -> tuple[RemotePartitionDeleteMetadata, ...]:
        """Return the events that leave each partition in a different state of its deletion."""
        return tuple(
            RemotePartitionDeleteMetadata(
                event_id=self._cluster.new_id(),
                topic_id_partition=tip,
                state=state,
                event_timestamp_ms=self._cluster.clock.wall_ms(),
                broker_id=1,
            )
            for tip in INVOICES
            for state in tuple(RemotePartitionDeleteState)[: tip.partition + 1]
        )
