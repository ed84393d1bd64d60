"""Stored objects on record as damaged, as a warning of a process that does its work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlm.tasks.report import PartitionReport
from rsm.segment.ids import id_to_text


def damaged_objects_warnings(reports: Iterable[PartitionReport]) -> Sequence[str]:
    """How many there are, and the one on record for the longest; empty if there is none."""
    found = [(each, report) for report in reports for each in report.anomalies]
    if not found:
        return ()
    first, report = min(found, key=lambda pair: pair[0].first_ms)
    tip = report.topic_id_partition
    objects = {(each.segment, each.object_key) for each, _ in found}
    count = "1 stored object is" if len(objects) == 1 else f"{len(objects)} stored objects are"
    warning = (
        f"{count} on record as damaged, first {first.object_key} ({first.kind.label}) of"
        f" {tip.topic}:{tip.partition} segment {id_to_text(first.segment)}; see `rlm status`"
    )
    return (warning,)
