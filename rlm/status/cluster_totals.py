"""Sums up the status of partitions, for one topic or for the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from rlm.status.cluster_status import PartitionStatus
from rlm.status.document_parts import Json
from rsm.program.json_shape import JsonField, JsonKind, JsonShape

STATUS_TOTALS = JsonShape(
    name="StatusTotals",
    meaning="The sums over all listed partitions.",
    fields={
        "topics": JsonField(JsonKind.COUNT, "Number of topics."),
        "partitions": JsonField(JsonKind.COUNT, "Number of partitions."),
        "stored_segments": JsonField(JsonKind.COUNT, "Number of stored segments."),
        "stored_bytes": JsonField(
            JsonKind.BYTES,
            "Size of the stored log. Records that two segments contain count once.",
        ),
        "stored_overlap_bytes": JsonField(
            JsonKind.BYTES, "Total size of the stored segments, minus `stored_bytes`."
        ),
        "lag_segments": JsonField(
            JsonKind.COUNT,
            "Number of unstored rolled segments, in partitions that a manager reports.",
        ),
        "lag_bytes": JsonField(JsonKind.BYTES, "Size of these segments."),
        "unknown_lag_partitions": JsonField(
            JsonKind.COUNT,
            "Tiered partitions whose lag is unknown. If not 0, the real lag may be higher.",
        ),
        "oldest_unstored_age_ms": JsonField(
            JsonKind.DURATION,
            "Time since the broker rolled the oldest segment that is not stored; null if all are "
            "stored, or if no manager reports the time.",
            is_nullable=True,
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTotals:
    """Represents the sums over partitions.

    The lag covers only partitions that a manager reports. `unknown_lag_partitions` is the number of
    tiered partitions whose lag is unknown; if it is not 0, the real lag may be higher.
    `oldest_unstored_age_ms` is None if no segment waits for its copy, or no manager reports it.
    """

    topics: int
    partitions: int
    stored_segments: int
    stored_bytes: int
    stored_overlap_bytes: int
    lag_segments: int
    lag_bytes: int
    unknown_lag_partitions: int
    oldest_unstored_age_ms: int | None

    def to_json(self) -> Json:
        return asdict(self)


def total(rows: Iterable[PartitionStatus]) -> StatusTotals:
    """Return the sums over all rows."""
    rows = tuple(rows)
    reports = [row.report for row in rows if row.report is not None]
    ages = (each.oldest_unstored_age_ms for each in reports)
    return StatusTotals(
        topics=len({row.topic_id_partition.topic_id for row in rows}),
        partitions=len(rows),
        stored_segments=sum(row.remote_segments for row in rows),
        stored_bytes=sum(row.remote_bytes for row in rows),
        stored_overlap_bytes=sum(row.remote_overlap_bytes for row in rows),
        lag_segments=sum(each.lag_segments or 0 for each in reports),
        lag_bytes=sum(each.lag_bytes or 0 for each in reports),
        unknown_lag_partitions=sum(map(_is_lag_unknown, rows)),
        oldest_unstored_age_ms=max((age for age in ages if age is not None), default=None),
    )


def rows_by_topic(
    rows: Iterable[PartitionStatus],
) -> Mapping[str, Sequence[PartitionStatus]]:
    """Return the rows of each topic, in the order of the rows."""
    topics: dict[str, list[PartitionStatus]] = {}
    for row in rows:
        topics.setdefault(row.topic_id_partition.topic, []).append(row)
    return topics


def _is_lag_unknown(row: PartitionStatus) -> bool:
    if row.report is not None:
        return row.report.lag_bytes is None
    return row.is_managed
