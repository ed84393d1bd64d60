"""Records of Kafka's own remote log metadata, written by Kafka's classes and read by rlm."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from rlm.cli.events.metadata_lines import native_document
from rlmm.native.records import decode_native
from rlmm.positions import MetadataPosition
from tests.services.kafka_runtime import java_command

_SOURCE = Path(__file__).with_name("NativeRecords.java")
_SEED, _COUNT = 405, 100
_PLACE = {"MetadataPartition": 3, "MetadataOffset": 7, "AppendTimeMs": 11}
_TYPES = {
    "0": "RemoteLogSegmentMetadata",
    "1": "RemoteLogSegmentMetadataUpdate",
    "2": "RemotePartitionDeleteMetadata",
    "3": "RemoteLogSegmentMetadataSnapshot",
}
_STATES = {
    "RemoteLogSegmentState": [
        "COPY_SEGMENT_STARTED",
        "COPY_SEGMENT_FINISHED",
        "DELETE_SEGMENT_STARTED",
        "DELETE_SEGMENT_FINISHED",
    ],
    "RemotePartitionDeleteState": [
        "DELETE_PARTITION_MARKED",
        "DELETE_PARTITION_STARTED",
        "DELETE_PARTITION_FINISHED",
    ],
}


def test_native_record_when_written_by_kafka_then_is_shown_as_kafka_shows_it() -> None:
    done = subprocess.run(
        java_command(str(_SOURCE), str(_SEED), str(_COUNT)),
        capture_output=True,
        text=True,
        timeout=120.0,
        check=True,
    )

    lines = done.stdout.splitlines()
    assert len(lines) == 4 * _COUNT
    for line in lines:
        record_type, shown, value = line.split("\t")
        record = decode_native(bytes.fromhex(value))
        found = native_document(MetadataPosition(partition=3, offset=7), 11, record)
        assert found == {**_PLACE, "Type": _TYPES[record_type], **_as_ours(json.loads(shown))}


def _as_ours(shown: object) -> dict[str, object]:
    """Convert Kafka's JSON to that of rlm: field names, names of states, a tagged default."""
    named = _renamed(shown)
    assert isinstance(named, dict)
    for field, names in _STATES.items():
        if field in named:
            named[field] = names[named[field]]
    if "SegmentSizeInBytes" in named:
        named.setdefault("TxnIndexEmpty", False)
    return named


def _renamed(value: object) -> object:
    if isinstance(value, dict):
        return {name[:1].upper() + name[1:]: _renamed(each) for name, each in value.items()}
    return [_renamed(each) for each in value] if isinstance(value, list) else value
