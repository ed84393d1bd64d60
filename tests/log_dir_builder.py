"""Writes a broker's log dirs as a broker leaves them: directories, segments, files."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from crc32c import crc32c

from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition, id_to_text
from tests.segment_builder import BuiltSegment

TOPIC_ID = UUID(int=0x5EED)
EPOCH_ZERO = Lineage.of((0, 0))


@dataclass
class ManualClock:
    """A clock that only `sleep_ms` moves. It records the requested durations."""

    now_ms: int = 1_800_000_000_000
    slept_ms: list[int] = field(default_factory=list)

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self.slept_ms.append(duration_ms)
        self.now_ms += duration_ms


def topic_id_partition(
    topic: str = "orders", partition: int = 0, *, topic_id: UUID = TOPIC_ID
) -> TopicIdPartition:
    return TopicIdPartition(topic_id=topic_id, topic=topic, partition=partition)


def make_log_dir(path: Path, *, node_id: int = 1, cluster_id: str = "cluster") -> Path:
    """Create a formatted log dir without partitions."""
    path.mkdir(parents=True)
    (path / "meta.properties").write_text(
        f"#\nversion=1\nnode.id={node_id}\ncluster.id={cluster_id}\n"
    )
    return path


def make_partition(
    log_dir: Path,
    partition: TopicIdPartition,
    *,
    lineage: Lineage = EPOCH_ZERO,
    name: str | None = None,
) -> Path:
    """Create a partition's directory without segments; `name` replaces the usual name."""
    directory = log_dir / (name or f"{partition.topic}-{partition.partition}")
    directory.mkdir()
    (directory / "partition.metadata").write_text(
        f"version: 0\ntopic_id: {id_to_text(partition.topic_id)}"
    )
    write_checkpoint(directory, lineage)
    return directory


def write_checkpoint(directory: Path, lineage: Lineage) -> None:
    lines = [f"{each.epoch} {each.start_offset}" for each in lineage.entries]
    text = "\n".join(["0", str(len(lines)), *lines]) + "\n"
    (directory / "leader-epoch-checkpoint").write_text(text)


def make_written_partition(
    path: Path, partition: TopicIdPartition, segments: Sequence[BuiltSegment]
) -> Path:
    """Create a log dir at `path` with only this partition; return the partition's directory."""
    directory = make_partition(make_log_dir(path), partition)
    write_segments(directory, segments)
    return directory


def write_segments(directory: Path, segments: Sequence[BuiltSegment]) -> None:
    """Write consecutive segments, and a producer snapshot at each roll; the last is active."""
    for segment in segments:
        base_offset = segment.offsets.start_offset
        contents = {
            "log": segment.log,
            "index": segment.offset_index,
            "timeindex": segment.time_index,
        }
        if segment.transaction_index:
            contents["txnindex"] = segment.transaction_index
        if base_offset != segments[0].offsets.start_offset:
            contents["snapshot"] = producer_snapshot()
        for kind, content in contents.items():
            segment_file(directory, base_offset, kind).write_bytes(content)


def segment_file(directory: Path, base_offset: int, kind: str) -> Path:
    return directory / f"{base_offset:020d}.{kind}"


def producer_snapshot(entries: bytes = b"\x00\x00\x00\x00") -> bytes:
    """Return a whole producer snapshot with these entries, by default of no producers."""
    return struct.pack(">hI", 1, crc32c(entries)) + entries


def put_aside(directory: Path, base_offset: int) -> None:
    """Rename a segment's files as a broker does before it deletes them."""
    for kind in ("log", "index", "timeindex", "txnindex"):
        path = segment_file(directory, base_offset, kind)
        if path.exists():
            path.rename(path.with_name(path.name + ".deleted"))


def rewrite_keeping_times(path: Path, content: bytes) -> None:
    """Change a file in place, and restore its times, so that these do not show the change."""
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
