"""Warns of recorded damaged objects and failing repairs in a process's status. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rlm.status.document import PartitionReport
from rsm.segment.ids import id_to_text

_MAX_CAUSES = 10


def damaged_objects_warnings(reports: Iterable[PartitionReport]) -> Sequence[str]:
    """Return warnings: the number of damaged objects with the oldest one, and failing repairs."""
    reports = tuple(reports)
    return (*_on_record(reports), *_failing_repairs(reports))


def _on_record(reports: Iterable[PartitionReport]) -> Sequence[str]:
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


def _failing_repairs(reports: Iterable[PartitionReport]) -> Sequence[str]:
    causes = Counter(each.repair_failure.cause for each in reports if each.repair_failure)
    return tuple(
        f"repairs of damaged segments fail: {cause}"
        f" ({count} {'partition' if count == 1 else 'partitions'})"
        for cause, count in causes.most_common(_MAX_CAUSES)
    )
