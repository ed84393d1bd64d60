"""Lists a partition's log from its directory: rolled segments, the active one, leader epochs.

To save reads, a listing reuses the greatest timestamp of each rolled segment whose file still has
the same inode, size and modification time.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rlm.facts.local_log import LocalLog, LogFileSize, RolledSegment
from rlm.source.log_file import FileIdentity
from rlm.source.partition_files import (
    LEADER_EPOCHS_FILE,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    PartitionFiles,
    list_partition_files,
    read_or_none,
)
from rsm.segment.batches.batch import NO_TIMESTAMP
from rsm.segment.checkpoints import parse_leader_epochs
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.indexes import TIME_ENTRY, TimeIndex
from rsm.segment.ranges import OffsetRange

_ATTEMPTS = 5
_MAX_CHECKPOINT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLog:
    """Represents a log, and the identity of each rolled segment's file for the next listing."""

    log: LocalLog
    identities: tuple[FileIdentity, ...]

    def known(self) -> dict[FileIdentity, RolledSegment]:
        return dict(zip(self.identities, self.log.rolled, strict=True))


def list_log(directory: Path, before: ListedLog | None = None) -> ListedLog:
    """List the log; `before` is its earlier listing.

    Raises RetriableError if there is no log, if it changes too fast, or if it has no leader epochs
    yet. Raises CorruptError if its checkpoint is malformed, OSError if the listing fails.
    """
    known = before.known() if before is not None else {}
    for _ in range(_ATTEMPTS):
        files = list_partition_files(directory)
        try:
            identities = tuple(
                FileIdentity.of(files.path(base, LOG_SUFFIX).stat())
                for base in files.log_base_offsets
            )
        except FileNotFoundError:
            continue  # A file was deleted after it was listed.
        if not identities:
            break
        rolled = tuple(
            _rolled_segment(
                files, OffsetRange(start_offset=base, end_offset=following), each, known
            )
            for (base, following), each in zip(
                pairwise(files.log_base_offsets), identities, strict=False
            )
        )
        log = LocalLog(
            rolled=rolled,
            active_base_offset=files.log_base_offsets[-1],
            active_size_bytes=identities[-1].size_bytes,
            active_written_ms=identities[-1].modified_ns // 1_000_000,
            # The checkpoint is read after the segments: the broker writes an epoch's entry before
            # its first batch.
            checkpoint=_read_checkpoint(directory, required=bool(rolled)),
        )
        return ListedLog(log=log, identities=identities[:-1])
    raise _unlisted(directory)


def list_file_sizes(directory: Path, from_offset: int) -> tuple[LogFileSize, ...]:
    """List the log file that contains `from_offset` and all later ones; see LogSource.

    Raises RetriableError if there is no log or it changes too fast, OSError if the listing fails.
    """
    for _ in range(_ATTEMPTS):
        files = list_partition_files(directory)
        first = max(0, bisect_right(files.log_base_offsets, from_offset) - 1)
        try:
            found = tuple(
                LogFileSize(base_offset=at, size_bytes=files.path(at, LOG_SUFFIX).stat().st_size)
                for at in files.log_base_offsets[first:]
            )
        except FileNotFoundError:
            continue  # A file was deleted after it was listed.
        if not found:
            break
        return found
    raise _unlisted(directory)


def _unlisted(directory: Path) -> RetriableError:
    return RetriableError(
        "cannot list the log: the directory contains none, or the log changes too fast",
        directory=directory,
    )


def _rolled_segment(
    files: PartitionFiles,
    offsets: OffsetRange,
    identity: FileIdentity,
    known: dict[FileIdentity, RolledSegment],
) -> RolledSegment:
    segment = known.get(identity)
    if segment is not None and segment.offsets == offsets:
        return segment
    written_ms = identity.modified_ns // 1_000_000
    time_index = files.path(offsets.start_offset, TIME_INDEX_SUFFIX)
    timestamp_ms = _last_time_entry_ms(time_index)
    return RolledSegment(
        file_base_offset=offsets.start_offset,
        offsets=offsets,
        size_bytes=identity.size_bytes,
        max_timestamp_ms=written_ms if timestamp_ms < 0 else timestamp_ms,
        rolled_ms=max(written_ms, _modified_ms(time_index)),
    )


def _modified_ms(time_index: Path) -> int:
    """Return when the broker last changed the time index; 0 if the file does not exist.

    The last change is the roll, when the broker adds an entry and truncates the file. It is later
    only if the broker rebuilt the index after an unclean stop.
    """
    try:
        return time_index.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return 0


def _last_time_entry_ms(path: Path) -> int:
    """Return a rolled segment's greatest timestamp, from the last entry of its time index.

    The broker adds that entry when it rolls the segment. Returns -1 if there is no entry, or if the
    file was not truncated then.
    """
    try:
        size_bytes = path.stat().st_size
        if not size_bytes or size_bytes % TIME_ENTRY.size:
            return NO_TIMESTAMP
        with path.open("rb") as file:
            file.seek(size_bytes - TIME_ENTRY.size)
            content = file.read(TIME_ENTRY.size)
    except FileNotFoundError:
        return NO_TIMESTAMP
    if len(content) < TIME_ENTRY.size or not any(content):
        return NO_TIMESTAMP
    return next(TimeIndex(base_offset=0, data=content).entries()).timestamp_ms


def _read_checkpoint(directory: Path, *, required: bool) -> Lineage:
    path = directory / LEADER_EPOCHS_FILE
    content = read_or_none(path, max_bytes=_MAX_CHECKPOINT_BYTES)
    if content:
        return parse_leader_epochs(content, file=str(path))
    if required:
        raise RetriableError("cannot list the log: it has no leader epochs yet", path=path)
    # The broker creates the file empty. It stays empty until the log has a leader.
    return Lineage()
