"""Represents the findings of an audit as values and as Arrow rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from types import MappingProxyType

import pyarrow as pa

from rsm.segment.metadata import RemoteLogSegmentMetadata


class FindingKind(Enum):
    """Lists the kinds of findings; the values are their names in reports."""

    ORPHAN = "orphan"
    QUARANTINED = "quarantined"
    FOREIGN = "foreign"
    MISSING = "missing"
    SIZE = "size"
    CHECKSUM = "checksum"
    OVERLAP = "overlap"
    GAP = "gap"
    OUT_OF_LINEAGE = "out_of_lineage"
    BELOW_LOG_START = "below_log_start"
    DANGLING_COPY = "dangling_copy"
    DANGLING_DELETE = "dangling_delete"


FINDING_MEANINGS: Mapping[FindingKind, str] = MappingProxyType(
    {
        FindingKind.MISSING: "An object of a finished segment does not exist. Readers get errors "
        "for these offsets: restore the object.",
        FindingKind.SIZE: "An object's length differs from its record. For effect and "
        "remedy, see `missing`.",
        FindingKind.CHECKSUM: "An object's checksum differs from its record. For effect "
        "and remedy, see `missing`.",
        FindingKind.GAP: "Offsets are not stored, although they lie between stored ones or were "
        "trimmed from the local log, and no gap is recorded. Readers get errors for these "
        "offsets: see `rlm status`.",
        FindingKind.ORPHAN: "No segment of the metadata names the object. Nothing reads it: see "
        "[orphans](spark.md#orphans).",
        FindingKind.QUARANTINED: "An orphan that was moved to quarantine longer ago than "
        "`--grace`. Treat it as an `orphan`.",
        FindingKind.FOREIGN: "An object whose name does not have `rlm`'s format. Move it out "
        "of the prefix.",
        FindingKind.OVERLAP: "A finished segment shares offsets with another one, for example "
        "after a [merge](streaming.md#small-segments-are-merged), until the parts are deleted. "
        "Do nothing: readers get each offset once.",
        FindingKind.OUT_OF_LINEAGE: "A finished segment outside the log's current lineage, for "
        "example after an unclean election. Do nothing: it expires after "
        "`remote.unreferenced.grace.ms`.",
        FindingKind.BELOW_LOG_START: "A finished segment below the log start offset. The manager "
        "deletes it. If it stays, see the manager's log.",
        FindingKind.DANGLING_COPY: "A copy started long ago and never finished. The manager "
        "deletes its objects. If they stay, see the manager's log.",
        FindingKind.DANGLING_DELETE: "A deletion started long ago and never finished. The manager "
        "finishes it; if it is a dead letter, `rlm-repair` does. If neither does, see the "
        "manager's log.",
    }
)
"""The meaning of each kind and what to do about it, for docs/spark-jobs.md."""

DATA_LOSS = (FindingKind.MISSING, FindingKind.SIZE, FindingKind.CHECKSUM, FindingKind.GAP)
"""The kinds that cause errors for readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Represents one difference between the store and the metadata.

    A field that does not apply is empty or -1.
    """

    kind: str
    topic: str = ""
    partition: int = -1
    segment_id: str = ""
    object_key: str = ""
    start_offset: int = -1
    end_offset: int = -1
    length_bytes: int = -1
    detail: str = ""


FINDINGS = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("segment_id", pa.string()),
        pa.field("object_key", pa.string()),
        pa.field("start_offset", pa.int64()),
        pa.field("end_offset", pa.int64()),
        pa.field("length_bytes", pa.int64()),
        pa.field("detail", pa.string()),
    ]
)
FINDINGS_DDL = (
    "kind string, topic string, partition int, segment_id string, object_key string, "
    "start_offset bigint, end_offset bigint, length_bytes bigint, detail string"
)


def finding_rows(findings: Iterable[Finding]) -> pa.RecordBatch:
    """Return findings as rows, in the same order."""
    return pa.RecordBatch.from_pylist([asdict(each) for each in findings], schema=FINDINGS)


def of_segment(
    kind: FindingKind, metadata: RemoteLogSegmentMetadata, detail: str, *, length_bytes: int = -1
) -> Finding:
    """Return a finding about a segment with its offsets."""
    tip = metadata.topic_id_partition
    return Finding(
        kind=kind.value,
        topic=tip.topic,
        partition=tip.partition,
        segment_id=str(metadata.segment_id),
        start_offset=metadata.offsets.start_offset,
        end_offset=metadata.offsets.end_offset,
        length_bytes=length_bytes,
        detail=detail,
    )
