"""One replica of a partition: the broker's files, and all that it ever had.

The log's whole history stays here, including trimmed and expired records: it is the truth that
stored segments are compared with. Only a truncation removes records from it, as in the cluster.
Leader epochs follow Kafka's LeaderEpochFileCache (assign, truncateFromStart, truncateFromEnd).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from rsm.segment.batches.batch import BatchHeader, scan_batches
from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.ranges import OffsetRange


@dataclass(kw_only=True)
class SegmentFile:
    """A log file. `writes` counts the changes after it was rolled, as its times would show them."""

    base_offset: int
    batches: list[bytes] = field(default_factory=list)
    writes: int = 0

    @property
    def content(self) -> bytes:
        return b"".join(self.batches)

    @property
    def size_bytes(self) -> int:
        return sum(len(batch) for batch in self.batches)

    @property
    def end_offset(self) -> int:
        return batch_header(self.batches[-1]).next_offset if self.batches else self.base_offset

    @property
    def max_timestamp_ms(self) -> int:
        return max((batch_header(b).max_timestamp_ms for b in self.batches), default=-1)


@dataclass(kw_only=True)
class Replica:
    """A partition on one broker. `leader_epoch` is None while the broker does not lead it.

    `deleted`: the topic was deleted, and its files are not found any more. `history`: the epochs of
    all records that it ever had. No broker keeps those below the log start; `epochs` lacks them.
    `highest_start_offset` is the highest log start that it ever had.
    """

    files: list[SegmentFile] = field(default_factory=lambda: [SegmentFile(base_offset=0)])
    first_file: int = 0
    log_start_offset: int = 0
    highest_start_offset: int = 0
    high_watermark: int = 0
    open_transaction_offset: int | None = None
    leader_epoch: int | None = None
    epochs: list[EpochEntry] = field(default_factory=list)
    history: list[EpochEntry] = field(default_factory=list)
    producer_snapshot: bytes | None = b""
    offline: bool = False
    deleted: bool = False

    @property
    def end_offset(self) -> int:
        return self.files[-1].end_offset

    @property
    def last_stable_offset(self) -> int:
        opened = self.open_transaction_offset
        return self.high_watermark if opened is None else min(opened, self.high_watermark)

    @property
    def on_disk(self) -> list[SegmentFile]:
        """Return the present files; the last one is active."""
        return self.files[self.first_file :]

    @property
    def checkpoint(self) -> Lineage:
        return Lineage(entries=tuple(self.epochs))

    def batches(self, offsets: OffsetRange) -> list[bytes]:
        """Return all batches of the whole history that begin in a range."""
        return [
            batch
            for file in self.files
            for batch in file.batches
            if batch_header(batch).base_offset in offsets
        ]

    def append(self, batch: bytes) -> None:
        """Write a batch to the active file; `commit` moves the high watermark."""
        self.files[-1].batches.append(batch)

    def roll(self) -> None:
        """Close the active file; do nothing if it is empty."""
        if self.files[-1].batches:
            self.files.append(SegmentFile(base_offset=self.end_offset))

    def lead(self, epoch: int) -> None:
        """Become the leader: the epoch begins at the log's end."""
        self.leader_epoch = epoch
        self.assign_epoch(epoch, self.end_offset)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Begin an epoch; remove the entries that it contradicts."""
        for entries in (self.epochs, self.history):
            entries[:] = [e for e in entries if e.start_offset < start_offset and e.epoch < epoch]
            entries.append(EpochEntry(epoch=epoch, start_offset=start_offset))

    def truncate(self, end_offset: int) -> None:
        """Cut the log to batches below an offset, as a follower does; its start may move back."""
        is_empty = end_offset < self.on_disk[0].base_offset
        while len(self.files) > 1 and self.files[-1].base_offset >= end_offset:
            self.files.pop().writes += 1
        self.first_file = min(self.first_file, len(self.files) - 1)
        last = self.files[-1]
        kept = [b for b in last.batches if batch_header(b).next_offset <= end_offset]
        if kept != last.batches:
            last.writes += 1
            last.batches = kept
        for entries in (self.epochs, self.history):
            entries[:] = [e for e in entries if e.start_offset < end_offset]
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.log_start_offset = min(self.log_start_offset, end_offset)
        if is_empty:  # nothing of the history is on disk any more
            self.roll()
            self.first_file = len(self.files) - 1

    def move_start(self, offset: int) -> None:
        """Move the start like DeleteRecords; the first remaining epoch then begins there."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.highest_start_offset = max(offset, self.highest_start_offset)
        below = [e for e in self.epochs if e.start_offset <= offset]
        if below:
            first = EpochEntry(epoch=below[-1].epoch, start_offset=offset)
            self.epochs = [first, *self.epochs[len(below) :]]

    def delete_old_files(self) -> None:
        """Remove files wholly below the start, as the retention check does; roll before."""
        if self.log_start_offset >= self.end_offset:
            self.roll()
        ends = [file.base_offset for file in self.files[1:]]
        self.first_file = sum(end_offset <= self.log_start_offset for end_offset in ends)

    def follow(self, leader: Replica) -> None:
        """Become equal to the leader's log: truncate to where both agree, and fetch the rest."""
        own, other = self.files, leader.files
        agreed = 0
        for mine, theirs in zip(_all_batches(own), _all_batches(other), strict=False):
            if mine != theirs:
                break
            agreed = batch_header(mine).next_offset
        if self.end_offset > agreed:
            self.truncate(agreed)
        for file in other:
            if file.base_offset >= self.end_offset:
                self.roll()
            for batch in file.batches:
                if batch_header(batch).base_offset >= self.end_offset:
                    self.append(batch)
        self.leader_epoch = None
        self.epochs, self.history = list(leader.epochs), list(leader.history)
        self.high_watermark = leader.high_watermark
        self.open_transaction_offset = leader.open_transaction_offset
        self.move_start(leader.log_start_offset)


@lru_cache(maxsize=4_096)
def batch_header(batch: bytes) -> BatchHeader:
    """Return the header of one batch."""
    return next(header for _, header in scan_batches(memoryview(batch)))


def _all_batches(files: list[SegmentFile]) -> list[bytes]:
    return [batch for file in files for batch in file.batches]
