"""Small stored segments of all layouts are merged on a real S3, and their objects are deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final
from uuid import uuid4

import pytest
from prometheus_client import CollectorRegistry

from rlm.metrics.metrics import Metrics
from rlm.policy.plan import DeleteSegment
from rlm.policy.stream.merging import SegmentMerge
from rlm.remote_read.timestamps import RemoteTimestamps
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.merger import MergeOrder, Merger
from rlm.tasks.deleting.expirer import Expirer
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlmm.events.segment import SegmentEvent
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.batches.records import ControlType
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.indexes import TransactionIndex
from rsm.segment.local_segment import AbortedTransaction, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType, PlannedObjects
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.segments import CountedAttempt
from tests.fakes.broker import MemoryBroker
from tests.fakes.dead_letters import MemoryDeadLetters
from tests.fakes.log_source import MemoryLogSource
from tests.fakes.replica import Replica
from tests.fakes.share_groups import MemoryShareGroups
from tests.remote_world import TIP, WRITER, RemoteWorld, bytes_of
from tests.segment_builder import (
    BuiltSegment,
    build_batch,
    build_control_batch,
    build_segment,
    records,
)
from tests.segment_storing import planned_segment, store_segment
from tests.services.provider import ServiceProvider
from tests.services.s3 import S3Server, credentials_environment

LINEAGE: Final = Lineage.of((0, 0), (3, 450))
END: Final = 500
FIRST_TIMESTAMP_MS: Final = 1_700_000_000_000  # each record is a millisecond after the one before

# Producer 7 begins in the first segment and aborts in the second; producer 8, in the last two.
ABORTED: Final = (
    AbortedTransaction(producer_id=7, first_offset=80, last_offset=199, last_stable_offset=200),
    AbortedTransaction(producer_id=8, first_offset=380, last_offset=469, last_stable_offset=470),
)
_PRODUCERS: Final = {80: 7, 120: 7, 380: 8, 430: 8}  # by the base offset of their batches

Ledger = tuple[int, int, int, int]
"""A ledger's id, its first entry's id, and the offsets from the first to the end."""

# Each ledger except a segment's last takes a block of 5 MiB, the smallest part of S3. So only the
# first segment has several ledgers. The last segment continues the ledger of the one before it.
STREAMED: Final[tuple[tuple[Ledger, ...], ...]] = (
    ((0, 0, 0, 50), (50, 0, 50, 100)),
    ((300, 0, 300, 400),),
    ((300, 10, 400, 500),),
)
READ_FROM: Final = (0, 95, 200, 455, END - 1)


def batch_of(base_offset: int) -> bytes:
    """Return ten offsets; the last one ends a transaction if the base is 190 or 460."""
    epoch = LINEAGE.epoch_for_offset(base_offset) or 0
    ended = next((each for each in ABORTED if each.last_offset == base_offset + 9), None)
    producer_id = _PRODUCERS.get(base_offset, -1)
    data = build_batch(
        records(10 if ended is None else 9, base_offset=base_offset, value_bytes=500),
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=producer_id >= 0,
    )
    if ended is None:
        return data
    return data + build_control_batch(
        ended.last_offset,
        ControlType.ABORT,
        producer_id=ended.producer_id,
        leader_epoch=epoch,
        timestamp_ms=FIRST_TIMESTAMP_MS + ended.last_offset,
    )


def log_between(start_offset: int, end_offset: int) -> bytes:
    return b"".join(map(batch_of, range(start_offset, end_offset, 10)))


def segment_between(start_offset: int, end_offset: int) -> BuiltSegment:
    ended_here = [each for each in ABORTED if start_offset <= each.last_offset < end_offset]
    return build_segment([log_between(start_offset, end_offset)], aborted=ended_here)


class StoredPartition(RemoteWorld):
    """One partition of five small segments in a bucket: streamed, raw, block_v1, two streamed."""

    def __init__(self, bucket: S3ChunkStorage) -> None:
        super().__init__()
        self.bucket = bucket
        self.claim(LINEAGE)
        first, *last = STREAMED
        self.parts = (
            self._stream(first),
            self._copy(segment_between(100, 200), "raw"),
            self._copy(segment_between(200, 300), "block_v1"),
            *map(self._stream, last),
        )
        self.ports = self._make_ports()

    def merged_as(self, layout: str) -> RemoteLogSegmentMetadata:
        """Merge all parts in a layout."""
        self.storage = self._manager(layout)
        self.ports = self._make_ports()
        ranges = (StoredRange(metadata=each, offsets=each.offsets) for each in self.parts)
        with ThreadPoolExecutor(2) as executor:
            merger = Merger(self.ports, executor, custom_metadata_max_bytes=128)
            return merger.merge(
                MergeOrder(
                    lead=PartitionLead(topic_id_partition=TIP, writer=WRITER),
                    segment_id=uuid4(),
                    merge=SegmentMerge(parts=tuple(ranges)),
                    lineage=LINEAGE,
                    timeout_ms=60_000,
                    stopping=lambda: False,
                    leads=lambda: True,
                )
            )

    def delete(self, part: RemoteLogSegmentMetadata) -> bool:
        expirer = Expirer(
            self.ports, metrics=Metrics(CollectorRegistry()), max_attempts=1, first_pause_ms=1
        )
        record = self.metadata.segment(part.segment_id)
        assert record is not None
        return expirer.delete(DeleteSegment(record=record, reason="merged"), WRITER)

    def read(self) -> list[tuple[bytes, int | None]]:
        """Return the log from several offsets on, and the offset of each one's timestamp."""
        reader = self.reader()
        timestamps = RemoteTimestamps(self.metadata, reader)
        return [
            (
                bytes_of(list(reader.scan(TIP, offset))),
                timestamps.offset_since(TIP, FIRST_TIMESTAMP_MS + offset),
            )
            for offset in READ_FROM
        ]

    def keys(self) -> set[str]:
        return {info.name for info in self.bucket.list("")}

    def _stream(self, ledgers: Sequence[Ledger]) -> RemoteLogSegmentMetadata:
        segment = segment_between(ledgers[0][2], ledgers[-1][3])
        storage, started = self._planned(segment, "block_v2")
        names = PlannedObjects(layout=started.layout, objects=started.objects)
        writer = storage.open_segment_writer(started.segment_id, names, CountedAttempt())
        for ledger_id, first_entry_id, start_offset, end_offset in ledgers:
            writer.begin_ledger(ledger_id, first_entry_id)
            writer.append(memoryview(log_between(start_offset, end_offset)))
        companions = SegmentCompanions(
            offset_index=segment.offset_index,
            time_index=segment.time_index,
            transaction_index=segment.transaction_index or None,
            producer_snapshot=None,
            lineage=LINEAGE,
            aborted_transactions=_aborted_in(segment),
        )
        sealed = writer.seal(started, companions)
        return self._finished(replace(started, objects=sealed.objects))

    def _copy(self, segment: BuiltSegment, layout: str) -> RemoteLogSegmentMetadata:
        storage, started = self._planned(segment, layout)
        aborted = _aborted_in(segment)
        return self._finished(
            store_segment(storage, started, segment, lineage=LINEAGE, aborted=aborted)
        )

    def _planned(
        self, segment: BuiltSegment, layout: str
    ) -> tuple[SegmentStorageManager, RemoteLogSegmentMetadata]:
        self.storage = self._manager(layout)
        planned = planned_segment(
            self.storage,
            segment,
            RemoteLogSegmentId(topic_id_partition=TIP, id=uuid4()),
            writer=WRITER,
            lineage=LINEAGE,
        )
        has_index = bool(segment.transaction_index)
        return self.storage, replace(planned, has_transaction_index=has_index)

    def _finished(self, stored: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        finished = replace(stored, state=SegmentState.COPY_SEGMENT_FINISHED)
        assert self.metadata.publish(SegmentEvent(event_id=uuid4(), metadata=finished)).accepted
        return finished

    def _manager(self, layout: str) -> SegmentStorageManager:
        """Return a manager that copies in this layout, and reads all."""
        layouts = (RawLayout(), BlockV1Layout(), BlockV2Layout())
        return SegmentStorageManager(
            storage=self.bucket,
            keys=ObjectKeys(),
            layouts=sorted(layouts, key=lambda each: each.name != layout),
        )

    def _make_ports(self) -> Ports:
        replica = Replica()
        replica.lead(WRITER.leader_epoch)
        replicas = {TIP: replica}
        return Ports(
            broker=MemoryBroker(WRITER.broker_id, replicas),
            source=MemoryLogSource(replicas),
            storage=self.storage,
            metadata=self.metadata,
            dead_letters=MemoryDeadLetters(),
            share_groups=MemoryShareGroups(),
            clock=self.clock,
            new_id=uuid4,
        )


def _aborted_in(segment: BuiltSegment) -> tuple[AbortedTransaction, ...]:
    first, end = segment.offsets.start_offset, segment.offsets.end_offset
    return tuple(a for a in ABORTED if a.first_offset < end and a.last_offset >= first)


@pytest.fixture(scope="module")
def server(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    with services.s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def stored(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredPartition]:
    """The parts in a bucket of their own."""
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)
    bucket = f"merges-{uuid4()}"
    server.create_bucket(bucket)
    settings = S3Settings(
        bucket=bucket, endpoint_url=server.url, path_style=True, attempt_timeout_ms=60_000
    )
    storage = S3ChunkStorage(S3Bucket(settings))
    yield StoredPartition(storage)
    storage.close()


@pytest.mark.parametrize("layout", ["raw", "block_v1", "block_v2"])
def test_merge_when_parts_are_on_s3_in_all_layouts_then_one_segment_has_what_they_had(
    stored: StoredPartition, layout: str
) -> None:
    """Bytes, indexes, transactions, epochs: as if the broker's log had been copied as a whole."""
    whole = segment_between(0, END)

    merged = stored.merged_as(layout)

    assert {each.layout for each in stored.parts} == {"raw", "block_v1", "block_v2"}
    assert (merged.layout, merged.offsets) == (layout, whole.offsets)
    span = ByteRange(start_position=0, end_position=merged.segment_size_bytes)
    assert stored.storage.fetch_log_segment(merged, span) == whole.log
    expected = {
        IndexType.OFFSET: whole.offset_index,
        IndexType.TIMESTAMP: whole.time_index,
        IndexType.TRANSACTION: TransactionIndex(transactions=ABORTED).to_bytes(),
        IndexType.LEADER_EPOCH: stored.storage.fetch_index(
            stored.parts[-1], IndexType.LEADER_EPOCH
        ),
    }
    assert {each: stored.storage.fetch_index(merged, each) for each in expected} == expected
    assert stored.storage.fetch_aborted_transactions(merged) == ABORTED
    assert merged.has_transaction_index
    assert merged.segment_leader_epochs == LINEAGE


def test_parts_when_merged_on_s3_and_deleted_then_readers_notice_nothing_and_no_object_is_left(
    stored: StoredPartition,
) -> None:
    expected = [(log_between(offset // 10 * 10, END), offset) for offset in READ_FROM]

    before = stored.read()
    merged = stored.merged_as("raw")
    with_parts = stored.read()
    while_deleted = [stored.read() for part in stored.parts if stored.delete(part)]

    assert (before, with_parts) == (expected, expected)
    assert while_deleted == [expected] * len(stored.parts)
    assert stored.keys() == set(merged.object_keys)
