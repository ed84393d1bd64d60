"""Measures how full the disks of a broker's partitions are."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm.source.partition_dirs import PartitionDirs
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """Represents a file system's current usage; `name` is a log dir on it.

    `used_bytes` includes what the broker cannot use, such as blocks reserved for root.
    """

    name: str
    total_bytes: int
    used_bytes: int


class LocalDisks(ABC):
    """Represents the disks of one broker. Thread-safe."""

    @abstractmethod
    def usage(self, topic_id_partition: TopicIdPartition) -> DiskUsage:
        """Return the usage of a partition's disk; `name` is equal for all partitions on a disk.

        Raises NotFoundError if no log dir contains the partition, RetriableError if a log dir
        cannot be read.
        """


class LogDirDisks(LocalDisks):
    """Represents the file systems of log dirs."""

    def __init__(self, log_dirs: Sequence[Path]) -> None:
        self._dirs = PartitionDirs(log_dirs)
        self._log_dirs = tuple(log_dirs)

    def usage(self, topic_id_partition: TopicIdPartition) -> DiskUsage:
        directory = self._dirs.find(topic_id_partition)
        try:
            found = shutil.disk_usage(directory)
            device = directory.stat().st_dev
            same = (str(each) for each in self._log_dirs if each.stat().st_dev == device)
            name = min(same, default=str(directory.parent))
        except OSError as error:
            raise RetriableError(
                "cannot read the usage of the disk", directory=directory, reason=error
            ) from error
        used_bytes = found.total - found.free
        return DiskUsage(name=name, total_bytes=found.total, used_bytes=used_bytes)
