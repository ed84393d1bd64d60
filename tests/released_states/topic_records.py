"""The records of a topic as lines of JSON, and an in-memory topic that holds them again.

Keys and values are hexadecimal: a changed byte is a changed digit in a review. A tombstone has the
value null. `kind` is for people and is not read.
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
    """Write one line for each record; `kinds` for those of the metadata topic."""
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
    """The event of a record of the metadata topic, by its name in the schema."""
    if record.value is None:
        return TOMBSTONE
    event = pb.MetadataEvent.FromString(record.value)
    if event.HasField("segment"):
        return str(segment_pb2.SegmentState.Name(event.segment.metadata.state))
    return str(event.WhichOneof("event"))


def log_of(identity: TopicIdentity, records: Sequence[TopicRecord], clock: Clock) -> MemoryLog:
    """A topic that holds these records at their offsets."""
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
    """The records that a cache has not read yet, and the last of each partition for its end."""
    last = {each.partition: each.offset for each in records}
    return [
        each
        for each in records
        if each.offset == last[each.partition]
        or each.offset >= positions.get(each.partition, ReadPosition(offset=0)).offset
    ]
