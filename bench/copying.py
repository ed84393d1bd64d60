"""Copying rolled segments to a directory, beside copying the same files plainly.

The product's way is all that a copy does between its two metadata events: it opens the segment
consistently, checks every batch, writes and verifies the objects. The plain way copies the file
within the kernel and syncs it. The two take turns segment by segment, so that what else the machine
does hits both alike; a run is all segments once, and what it wrote is removed after it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from bench.dataset import TOPIC, Dataset
from bench.measurement import Measurement, of_runs
from rlm.source.log_source import LocalLog, LocalSegment, LogSource
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
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
    os.sync()  # what the broker wrote is not to be paid for by the first run
    _run(dataset, log)  # once before: files into the page cache, code loaded
    seconds = [_run(dataset, log) for _ in range(dataset.sizes.runs)]
    ratios = [plain / ours for plain, ours in seconds]
    return [
        of_runs(_PEER, [total_mb / plain for plain, _ in seconds], unit="MB/s"),
        of_runs(
            "segment copy to a directory", [total_mb / ours for _, ours in seconds], unit="MB/s"
        ),
        of_runs("segment copy ÷ plain copy", ratios, unit="ratio", peer=_PEER, goal="≥ 0.9"),
    ]


def _run(dataset: Dataset, log: LocalLog) -> tuple[float, float]:
    """Copy every segment in both ways; the seconds of the plain way and of ours."""
    plain_s, ours_s = 0.0, 0.0
    with _new_directory(dataset.scratch / "plain") as target, _store(dataset) as storage:
        source, partition = dataset.source(), dataset.partition()
        copier = _SegmentCopier(source=source, storage=storage, partition=partition, log=log)
        directory = dataset.cluster.broker.log_dirs[0] / f"{TOPIC}-0"
        for segment in log.rolled:
            name = f"{segment.offsets.start_offset:020d}.log"
            plain_s += _timed(partial(_copy_plainly, directory / name, target / name))
            ours_s += _timed(partial(copier.copy, segment))
    os.sync()  # so that the removal is not charged to the next run
    return plain_s, ours_s


def _copy_plainly(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    with target.open("rb") as copied:
        os.fsync(copied.fileno())


@dataclass(frozen=True, slots=True, kw_only=True)
class _SegmentCopier:
    """Copies segments of one log as the product does."""

    source: LogSource
    storage: RemoteStorageManager
    partition: TopicIdPartition
    log: LocalLog

    def copy(self, segment: LocalSegment) -> None:
        """Copy one."""
        lineage, end_offset = self.log.checkpoint, self.log.active_base_offset
        with self.source.open_segment(self.partition, segment, lineage, end_offset) as opened:
            metadata = self._describe(segment)
            self.storage.copy_log_segment_data(metadata, opened.data, UnboundedAttempt())
            opened.verify_unchanged()

    def _describe(self, segment: LocalSegment) -> RemoteLogSegmentMetadata:
        segment_id = RemoteLogSegmentId(topic_id_partition=self.partition, id=uuid4())
        return RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=segment.offsets,
            max_timestamp_ms=segment.max_timestamp_ms,
            segment_size_bytes=segment.size_bytes,
            segment_leader_epochs=self.log.checkpoint.within(segment.offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=Writer(broker_id=1, leader_epoch=0, incarnation=uuid4()),
            event_timestamp_ms=0,
            layout=self.storage.layout_name(),
            objects=self.storage.plan_objects(segment_id, segment.offsets.start_offset),
        )


@contextmanager
def _store(dataset: Dataset) -> Iterator[RemoteStorageManager]:
    with (
        _new_directory(dataset.scratch / "store") as root,
        closing(
            SegmentStorageManager(
                storage=FilesystemChunkStorage(root),
                keys=ObjectKeys(prefix=""),
                layouts=(RawLayout(),),
            )
        ) as storage,
    ):
        yield storage


@contextmanager
def _new_directory(path: Path) -> Iterator[Path]:
    path.mkdir()
    yield path
    shutil.rmtree(path)


def _timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
