"""Writes the records of a topic as lines of JSON, and reads them into a topic in memory.

Keys and values are hexadecimal, so that reviews show changed bytes. A tombstone has the value null.
The field `kind` is only for people.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.proto import events_pb2 as pb
from rlmm.topic.memory import MemoryLog
from rsm.segment.clock import Clock
from rsm.segment.proto import segment_pb2

TOMBSTONE = "tombstone"


def write_records(path: Path, records: Iterable[TopicRecord], *, kinds: bool = True) -> None:
    """Write one line for each record, with `kinds` for records of the metadata topic."""
    lines = []
    for record in records:
        line: dict[str, object] = {"kind": kind_of(record)} if kinds else {}
        line |= {
            "partition": record.partition,
            "offset": record.offset,
            "leader_epoch": record.leader_epoch,
            "append_time_ms": record.append_time_ms,
            "key": record.key.hex(),
            "value": None if record.value is None else record.value.hex(),
        }
        lines.append(json.dumps(line) + "\n")
    path.write_text("".join(lines))


def read_records(path: Path) -> list[TopicRecord]:
    """Read what `write_records` wrote."""
    return [
        TopicRecord(
            partition=line["partition"],
            offset=line["offset"],
            append_time_ms=line["append_time_ms"],
            key=bytes.fromhex(line["key"]),
            value=None if line["value"] is None else bytes.fromhex(line["value"]),
            leader_epoch=line["leader_epoch"],
        )
        for line in map(json.loads, path.read_text().splitlines())
    ]


def kind_of(record: TopicRecord) -> str:
    """Return the schema's name for the event in a record of the metadata topic."""
    if record.value is None:
        return TOMBSTONE
    event = pb.MetadataEvent.FromString(record.value)
    if event.HasField("segment"):
        return str(segment_pb2.SegmentState.Name(event.segment.metadata.state))
    return str(event.WhichOneof("event"))


def log_of(identity: TopicIdentity, records: Sequence[TopicRecord], clock: Clock) -> MemoryLog:
    """Return a topic that has these records at their offsets."""
    log = MemoryLog(
        clock,
        partition_count=identity.partition_count,
        cluster_id=identity.cluster_id,
        topic_id=identity.topic_id,
    )
    for partition in range(identity.partition_count):
        log.hold(partition, [each for each in records if each.partition == partition])
    return log


def without_read(
    records: Sequence[TopicRecord], positions: dict[int, ReadPosition]
) -> list[TopicRecord]:
    """Return the records that a cache has not read yet, and each partition's last record."""
    last = {each.partition: each.offset for each in records}
    return [
        each
        for each in records
        if each.offset == last[each.partition]
        or each.offset >= positions.get(each.partition, ReadPosition(offset=0)).offset
    ]
