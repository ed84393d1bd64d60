"""Copying rolled segments to a directory, beside copying the same files plainly.

The product's way is all that a copy does between its two metadata events: it opens the segment
consistently, checks every batch, writes and verifies the objects. The plain way copies the file
within the kernel and syncs it. Runs alternate, so that what else the machine does hits both alike,
and what a run wrote is removed before the next one begins.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from bench.dataset import TOPIC, Dataset
from bench.measurement import Measurement, of_runs
from rlm.source.log_source import LocalLog, LocalSegment
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange
from rsm.spi import CopyAttempt, RemoteStorageManager
from rsm.storage.filesystem import FilesystemChunkStorage

_MB = 1_000_000
_PEER = "plain file copy with fsync"


class UnboundedAttempt(CopyAttempt):
    """An attempt that nothing ends."""

    def check(self) -> None:
        return None


def measure_copying(dataset: Dataset) -> list[Measurement]:
    """Throughput of both ways, and their ratio run by run."""
    log = dataset.source().local_log(dataset.partition())
    total_mb = sum(segment.size_bytes for segment in log.rolled) / _MB
    product_rates: list[float] = []
    plain_rates: list[float] = []
    os.sync()  # what the broker wrote is not to be paid for by the first runs
    _SegmentCopies(dataset, log).run()  # once before: files into the page cache, code loaded
    for _ in range(dataset.sizes.runs):
        plain_rates.append(total_mb / _PlainCopies(dataset, log.rolled).run())
        product_rates.append(total_mb / _SegmentCopies(dataset, log).run())
    ratios = [ours / plain for ours, plain in zip(product_rates, plain_rates, strict=True)]
    return [
        of_runs(_PEER, plain_rates, unit="MB/s"),
        of_runs("segment copy to a directory", product_rates, unit="MB/s"),
        of_runs("segment copy ÷ plain copy", ratios, unit="ratio", peer=_PEER, goal="≥ 0.9"),
    ]


@dataclass(frozen=True, slots=True)
class _PlainCopies:
    """Every segment's file copied and synced, one after the other."""

    dataset: Dataset
    segments: Sequence[LocalSegment]

    def run(self) -> float:
        directory = self.dataset.cluster.broker.log_dirs[0] / f"{TOPIC}-0"
        return _timed_in(
            self.dataset.scratch / "plain", lambda target: self._copy(directory, target)
        )

    def _copy(self, directory: Path, target: Path) -> None:
        for segment in self.segments:
            name = f"{segment.offsets.start_offset:020d}.log"
            shutil.copyfile(directory / name, target / name)
            with (target / name).open("rb") as copied:
                os.fsync(copied.fileno())


@dataclass(frozen=True, slots=True)
class _SegmentCopies:
    """Every segment copied as the product does, one after the other."""

    dataset: Dataset
    log: LocalLog

    def run(self) -> float:
        return _timed_in(self.dataset.scratch / "store", self._copy)

    def _copy(self, root: Path) -> None:
        storage = SegmentStorageManager(
            storage=FilesystemChunkStorage(root),
            keys=ObjectKeys(prefix=""),
            layouts=(RawLayout(),),
        )
        source, partition = self.dataset.source(), self.dataset.partition()
        for segment in self.log.rolled:
            end_offset = self.log.active_base_offset
            with source.open_segment(partition, segment, self.log.checkpoint, end_offset) as opened:
                metadata = self._describe(storage, segment.offsets, opened.data.log.length_bytes)
                storage.copy_log_segment_data(metadata, opened.data, UnboundedAttempt())
                opened.verify_unchanged()
        storage.close()

    def _describe(
        self, storage: RemoteStorageManager, offsets: OffsetRange, size_bytes: int
    ) -> RemoteLogSegmentMetadata:
        partition = self.dataset.partition()
        segment_id = RemoteLogSegmentId(topic_id_partition=partition, id=uuid4())
        return RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=offsets,
            max_timestamp_ms=0,
            segment_size_bytes=size_bytes,
            segment_leader_epochs=self.log.checkpoint.within(offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=Writer(broker_id=1, leader_epoch=0, incarnation=uuid4()),
            event_timestamp_ms=0,
            layout=storage.layout_name(),
            objects=storage.plan_objects(segment_id, offsets.start_offset),
        )


def _timed_in(directory: Path, work: Callable[[Path], None]) -> float:
    """Seconds that `work` takes in a new directory, which is removed again."""
    directory.mkdir()
    started = time.perf_counter()
    work(directory)
    seconds = time.perf_counter() - started
    shutil.rmtree(directory)
    os.sync()  # so that the removal is not charged to the next run
    return seconds
