"""Lists the log files and transaction indexes of one partition's directory.

Implements Kafka's file names: the base offset in 20 digits and a suffix for the kind. Files that
are being deleted, cleaned or swapped in have a further suffix and are not listed. Source:
org.apache.kafka.storage.internals.log.LogFileUtils.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
LEADER_EPOCHS_FILE = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"

_NAME = re.compile(r"([0-9]{20})(\.log|\.txnindex)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFiles:
    """Represents one listing of a partition's directory; base offsets ascend."""

    directory: Path
    log_base_offsets: tuple[int, ...]
    transaction_index_base_offsets: tuple[int, ...]

    def path(self, base_offset: int, suffix: str) -> Path:
        return segment_path(self.directory, base_offset, suffix)

    def next_base_offset(self, base_offset: int) -> int | None:
        """Return the base offset of the log file after `base_offset`; None if there is none.

        A file with a successor is rolled: the broker appends only to the last one.
        """
        following = bisect_right(self.log_base_offsets, base_offset)
        later = self.log_base_offsets[following : following + 1]
        return later[0] if later else None


def segment_path(directory: Path, base_offset: int, suffix: str) -> Path:
    """Return the path of the segment's file with this suffix."""
    return directory / f"{base_offset:020d}{suffix}"


def list_partition_files(directory: Path) -> PartitionFiles:
    """List the directory. Raises OSError if the listing fails.

    Not atomic: a file that is created or deleted meanwhile may or may not be listed.
    """
    bases: dict[str, list[int]] = {LOG_SUFFIX: [], TRANSACTION_INDEX_SUFFIX: []}
    for name in os.listdir(directory):  # noqa: PTH208 - names are enough, and there are thousands
        match = _NAME.fullmatch(name)
        if match:
            bases[match[2]].append(int(match[1]))
    return PartitionFiles(
        directory=directory,
        log_base_offsets=tuple(sorted(bases[LOG_SUFFIX])),
        transaction_index_base_offsets=tuple(sorted(bases[TRANSACTION_INDEX_SUFFIX])),
    )


def read_or_none(path: Path, *, max_bytes: int) -> bytes | None:
    """Read the file's first `max_bytes`; None if there is no such file."""
    try:
        with path.open("rb") as file:
            return file.read(max_bytes)
    except FileNotFoundError:
        return None
