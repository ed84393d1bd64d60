"""Finds the directories of a broker's partitions in its log dirs.

A partition's directory is named `<topic>-<partition>`, and its `partition.metadata` contains the
topic's id. Future replicas, stray replicas and those being deleted are named
`<topic>-<partition>.<uuid>-future`, `-stray` and `-delete`. Source:
org.apache.kafka.storage.internals.log.UnifiedLog, LogManager.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlm.source.meta_properties import META_PROPERTIES_FILE
from rlm.source.partition_files import PARTITION_METADATA_FILE, read_or_none
from rsm.segment.checkpoints import parse_partition_metadata
from rsm.segment.errors import CorruptError, NotFoundError, RetriableError
from rsm.segment.ids import TopicIdPartition

_CLUSTER_METADATA_TOPIC = "__cluster_metadata"
_NAME = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})", re.ASCII)
_MAX_METADATA_BYTES = 4096


class PartitionDirs:
    """Finds partitions in a broker's log dirs. Has no state, so it sees a move at once.

    If a partition is in two log dirs, the directory renamed last is the current one: a move between
    log dirs ends with a rename of the caught-up future replica. Just after that rename, the broker
    renames the old directory. Thread-safe.
    """

    def __init__(self, log_dirs: Sequence[Path]) -> None:
        self._log_dirs = tuple(log_dirs)

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        """Return all partitions in the log dirs.

        Omits a partition whose topic id is not written yet. Raises RetriableError if a log dir
        cannot be read, because its partitions are unknown.
        """
        found: set[TopicIdPartition] = set()
        for log_dir in self._log_dirs:
            _require_online(log_dir)
            try:
                found.update(_partitions_in(log_dir))
            except OSError as error:
                raise _unreadable(log_dir) from error
        return tuple(sorted(found))

    def find(self, topic_id_partition: TopicIdPartition) -> Path:
        """Return the directory of the partition.

        Raises NotFoundError if there is none. Raises RetriableError if a log dir that may contain
        it is unreadable, or if the broker has not written the directory's topic id yet.
        """
        found: list[tuple[int, Path]] = []
        nameless: Path | None = None
        offline: OSError | None = None
        for log_dir in self._log_dirs:
            path = log_dir / f"{topic_id_partition.topic}-{topic_id_partition.partition}"
            try:
                if _read_partition(path) == topic_id_partition:
                    found.append((path.stat().st_ctime_ns, path))
                elif path.is_dir() and not (path / PARTITION_METADATA_FILE).exists():
                    nameless = path
            except OSError as error:
                offline = error
        if found:
            return max(found)[1]
        if offline is not None:
            raise RetriableError(
                "cannot find the partition: a log dir is unreadable",
                topic_id_partition=topic_id_partition,
                reason=offline,
            ) from offline
        for log_dir in self._log_dirs:
            _require_online(log_dir)
        if nameless is not None:
            raise RetriableError(
                "cannot find the partition: "
                "the broker has not written the topic's id (partition.metadata) yet",
                path=nameless,
            )
        raise NotFoundError(
            "cannot find the partition: no log dir contains it",
            topic_id_partition=topic_id_partition,
        )


def _partitions_in(log_dir: Path) -> Iterator[TopicIdPartition]:
    for name in os.listdir(log_dir):  # noqa: PTH208 - names are enough, and there are thousands
        partition = _read_partition(log_dir / name)
        if partition is not None:
            yield partition


def _read_partition(directory: Path) -> TopicIdPartition | None:
    """Return the directory's partition; None if it is not one, or has no topic id yet."""
    match = _NAME.fullmatch(directory.name)
    if match is None or match[1] == _CLUSTER_METADATA_TOPIC:
        return None
    path = directory / PARTITION_METADATA_FILE
    try:
        content = read_or_none(path, max_bytes=_MAX_METADATA_BYTES)
    except NotADirectoryError:
        return None
    if content is None:
        return None
    try:
        topic_id = parse_partition_metadata(content, file=str(path))
    except CorruptError as error:
        raise RetriableError("cannot read a partition's topic id", reason=error) from error
    return TopicIdPartition(topic_id=topic_id, topic=match[1], partition=int(match[2]))


def _require_online(log_dir: Path) -> None:
    """Raise RetriableError if there is no meta.properties: the log dir may not be mounted."""
    try:
        (log_dir / META_PROPERTIES_FILE).stat()
    except OSError as error:
        raise _unreadable(log_dir) from error


def _unreadable(log_dir: Path) -> RetriableError:
    return RetriableError(
        "cannot read a log dir: it is offline, not mounted or not formatted", log_dir=log_dir
    )
