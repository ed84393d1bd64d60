"""Runs the history of the recorded cluster: every event, every layout, every batch format.

A manager copies, trims, records a gap, expires, fails to delete and is killed in the middle of a
copy. Commands, gateways and jobs then publish what only they publish.
"""

from __future__ import annotations

from pathlib import Path

from rlm.topics.originals_mirror import OriginalsMirror, StoredOriginals
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rlmm.events.gaps import GapsRecorded
from rlmm.events.pause import PausableTask
from rlmm.events.policy import TopicPolicyChanged
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.layout.originals import OriginalsKeys
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType
from rsm.segment.errors import RetriableError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.released_states.recorded_cluster import (
    BlockProcess,
    ChunkedProcess,
    RawProcess,
    RecordedCluster,
    StreamProcess,
    publish,
)
from tests.released_states.recorded_others import RecordedOthers
from tests.released_states.recorded_partitions import (
    CLICKS,
    CLICKS_ID,
    LED,
    ORDERS,
    ORDERS_1,
    ORDERS_ID,
    PAYMENTS,
)
from tests.released_states.recorded_policies import policies, streaming_policy
from tests.released_states.written_logs import (
    ABORTING_PRODUCER,
    COMMITTING_PRODUCER,
    WrittenLog,
)

_HOUR_MS = 3_600_000
_COPIED = SegmentState.COPY_SEGMENT_FINISHED.name
_CODECS = tuple(CompressionType)


class RecordedHistory:
    """Runs the whole history on a cluster."""

    def __init__(self, directory: Path) -> None:
        self.cluster = RecordedCluster(directory, LED)
        self.orders, self.legacy, self.clicks, self.payments = (
            self.cluster.logs[tip] for tip in LED
        )
        self.others = RecordedOthers(self.cluster)
        self.orphans: tuple[OrphanDeadLetter, ...] = ()

    def happen(self) -> TopicBasedRemoteLogMetadataManager:
        """Make the whole history.

        Returns the open metadata: its last writes are in RocksDB's log.
        """
        metadata = self.cluster.open_metadata()
        publish(metadata, *policies(ORDERS_ID, CLICKS_ID, self.cluster.new_id))
        metadata.close()
        for log in (self.orders, self.legacy, self.clicks):
            log.elect(0)
        self._copy_as_they_are()
        self._copy_twice()
        self._lose_records_and_copy_in_blocks()
        self._expire()
        self._stream()
        self._copy_in_chunks()
        self._die_copying()
        metadata = self.cluster.open_metadata()
        publish(metadata, self._shed_records(metadata), *self.others.requests())
        publish(metadata, self.others.gateway(), self.others.stopped_gateway())
        publish(metadata, *self.others.deletion_of_invoices())
        publish(metadata, *self.others.attempts_of_another_broker())
        self._leave_orphans(metadata)
        self._mirror_originals(metadata)
        return metadata

    def _copy_as_they_are(self) -> None:
        """Copy in layout raw: all codecs, messages before batches, transactions, an election."""
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
        """Kill a manager after it has copied an unrolled part; let the next one copy that again.

        Deletions are paused, so that the objects stay. The record that the killed manager had not
        published arrives late, so that two segments overlap.
        """
        self.cluster.start(RawProcess, idle_copy_ms=0)
        self.legacy.write(2)
        late = self.cluster.kill_before(_COPIED)
        self.legacy.write(2)
        self.legacy.roll()
        metadata = self.cluster.open_metadata()
        publish(metadata, self.others.paused(ORDERS, PausableTask.DELETE))
        metadata.close()
        self.cluster.start(RawProcess)
        self.cluster.settle()
        metadata = self.cluster.open_metadata()
        publish(metadata, late, self.others.paused(ORDERS))
        metadata.close()

    def _lose_records_and_copy_in_blocks(self) -> None:
        """Delete records from the broker before they are copied; then copy in layout block_v1."""
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
        """Let two segments expire; the store refuses to delete one of them."""
        process = self.cluster.start(BlockProcess)
        self.cluster.clock.advance(2 * _HOUR_MS)
        self.clicks.write()
        self.clicks.roll()
        refused = next(process.ports.metadata.list_remote_log_segments(CLICKS)).metadata
        error = RetriableError("the store refuses")
        process.effects.refuse("delete .log", refused.objects[0].key, error)
        self.cluster.settle()

    def _stream(self) -> None:
        """Stream in layout block_v2: segments have several ledgers; two segments share one."""
        metadata = self.cluster.open_metadata()
        publish(
            metadata,
            TopicPolicyChanged(
                event_id=self.cluster.new_id(),
                policy=streaming_policy(PAYMENTS.topic, PAYMENTS.topic_id),
            ),
        )
        metadata.close()
        self.payments.elect(0)
        for codec in _CODECS:
            self.payments.write(codec=codec)
            self.payments.roll()
        aborted_from, committed_from = _begin_transactions(self.payments)
        _end_transactions(self.payments, aborted_from, committed_from)
        self.cluster.start(StreamProcess)
        self.cluster.settle()
        self.payments.write(12, value_bytes=200)
        self.cluster.settle()

    def _copy_in_chunks(self) -> None:
        """Copy in layout chunked: a batch spans chunks."""
        self.legacy.write(12)
        self.legacy.roll()
        self.cluster.start(ChunkedProcess)
        self.cluster.settle()

    def _die_copying(self) -> None:
        """Cut off stored records by an unclean election; kill the manager at the next copy.

        The copy leaves its objects, but no COPY_SEGMENT_FINISHED.
        """
        self.cluster.start(RawProcess)
        self.legacy.replica.truncate(self.legacy.replica.end_offset - 2)
        self.legacy.roll()
        self.legacy.elect(2)
        self.legacy.write()
        self.legacy.roll()
        self.cluster.kill_before(_COPIED)

    def _shed_records(self, metadata: TopicBasedRemoteLogMetadataManager) -> GapsRecorded:
        """Return the gaps of a leader that sheds records, and of an operator's lost segment."""
        owner = metadata.partition_state(ORDERS_1).owner
        assert owner is not None, "no manager has claimed the partition"
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

    def _leave_orphans(self, metadata: TopicBasedRemoteLogMetadataManager) -> None:
        """Create objects that no segment names, and dead letters for them."""
        identity = metadata.identity
        assert identity is not None, "the metadata is not ready"
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
