"""Writes a broker's logs in every format of a segment, in memory and as a broker's log dir."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rsm.segment.batches.batch import TimestampType
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType, Record
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import AbortedTransaction
from tests.fakes.clock import FakeClock
from tests.fakes.replica import Replica, SegmentFile
from tests.log_dir_builder import (
    make_partition,
    producer_snapshot,
    segment_file,
    write_checkpoint,
    write_segments,
)
from tests.segment_builder import (
    BuiltSegment,
    build_batch,
    build_control_batch,
    build_legacy_message,
    build_segment,
    record,
)

ABORTING_PRODUCER = 7
COMMITTING_PRODUCER = 8
_LATENESS_MS = (3, 0, 200)  # added to timestamps in turn, so that some are out of order
_HEADERS = (("trace", b"\x00\x01"), ("empty", None))


@dataclass(kw_only=True)
class WrittenLog:
    """A partition's log: its replica, and the transaction indexes of its files."""

    topic_id_partition: TopicIdPartition
    clock: FakeClock
    replica: Replica = field(default_factory=lambda: Replica(producer_snapshot=producer_snapshot()))
    aborted: dict[int, list[AbortedTransaction]] = field(default_factory=dict)

    def elect(self, epoch: int) -> None:
        """Let the broker lead the partition in a new epoch."""
        self.replica.lead(epoch)

    def write(
        self,
        count: int = 3,
        *,
        codec: CompressionType = CompressionType.NONE,
        append_time: bool = False,
        producer_id: int = -1,
        skips: int = 0,
        value_bytes: int = 0,
    ) -> int:
        """Write a batch and return its base offset.

        It ends with `skips` offsets that compaction removed. Values have at least `value_bytes`.
        """
        epoch = self._epoch()
        base_offset = self.replica.end_offset
        now_ms = self.clock.wall_ms()
        batch = build_batch(
            [
                _record(base_offset + n, now_ms + _LATENESS_MS[n % 3], value_bytes)
                for n in range(count)
            ],
            codec=codec,
            last_offset=base_offset + count - 1 + skips,
            leader_epoch=epoch,
            timestamp_type=(
                TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
            ),
            append_time_ms=now_ms + 5 if append_time else None,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            is_transactional=producer_id >= 0,
        )
        self._append(batch)
        return base_offset

    def write_legacy(self, count: int, *, magic: int) -> None:
        """Write messages of Kafka's formats from before record batches."""
        for _ in range(count):
            offset = self.replica.end_offset
            value = b"message %06d" % offset
            timestamp_ms = self.clock.wall_ms() + offset
            self._append(
                build_legacy_message(offset, value, magic=magic, timestamp_ms=timestamp_ms)
            )

    def end_transaction(self, producer_id: int, first_offset: int, end: ControlType) -> None:
        """Write the marker of a transaction, and an index entry if the marker aborts it."""
        offset = self.replica.end_offset
        marker = build_control_batch(
            offset,
            end,
            producer_id=producer_id,
            leader_epoch=self._epoch(),
            timestamp_ms=self.clock.wall_ms(),
        )
        self._append(marker)
        if end is ControlType.ABORT:
            entry = AbortedTransaction(
                producer_id=producer_id,
                first_offset=first_offset,
                last_offset=offset,
                last_stable_offset=offset + 1,
            )
            self.aborted.setdefault(self.replica.files[-1].base_offset, []).append(entry)

    def roll(self) -> None:
        """Close the active file."""
        self.replica.roll()

    def built(self, file: SegmentFile) -> BuiltSegment:
        """Return a file of the log with its indexes."""
        return build_segment(
            file.batches,
            base_offset=file.base_offset,
            aborted=self.aborted.get(file.base_offset, ()),
        )

    def _append(self, batch: bytes) -> None:
        self.replica.append(batch)
        self.replica.high_watermark = self.replica.end_offset

    def _epoch(self) -> int:
        epoch = self.replica.leader_epoch
        assert epoch is not None, "no broker leads the log"
        return epoch


def write_log_dir(log_dir: Path, logs: Sequence[WrittenLog]) -> None:
    """Bring a log dir up to date with the logs, as a broker writes, rolls and truncates them."""
    for log in logs:
        tip = log.topic_id_partition
        directory = log_dir / f"{tip.topic}-{tip.partition}"
        if not directory.is_dir():
            make_partition(log_dir, tip)
        write_checkpoint(directory, log.replica.checkpoint)
        files = log.replica.files
        for file in files:
            path = segment_file(directory, file.base_offset, "log")
            if not path.exists() or path.read_bytes() != file.content:
                write_segments(directory, [log.built(file)])
                written_s = log.clock.wall_ms() / 1_000
                os.utime(path, (written_s, written_s))
        for file in files[1:]:
            snapshot = segment_file(directory, file.base_offset, "snapshot")
            snapshot.write_bytes(producer_snapshot())
        _remove_truncated(directory, {file.base_offset for file in files})


def _remove_truncated(directory: Path, base_offsets: set[int]) -> None:
    for path in directory.glob("[0-9]*"):
        if int(path.stem) not in base_offsets:
            path.unlink()


def replicas(logs: Sequence[WrittenLog]) -> Mapping[TopicIdPartition, Replica]:
    """Return the replicas by partition, as a broker has them."""
    return {log.topic_id_partition: log.replica for log in logs}


def _record(offset: int, timestamp_ms: int, value_bytes: int) -> Record:
    """Return a record; some have headers, some no key, and some no value."""
    return record(
        offset,
        None if offset % 5 == 4 else (b"record %06d" % offset).ljust(value_bytes, b"."),
        key=None if offset % 3 == 2 else b"key %d" % (offset % 7),
        timestamp_ms=timestamp_ms,
        headers=_HEADERS if offset % 2 else (),
    )
