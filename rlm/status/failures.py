"""Summarizes failing copies, failing repairs and damaged objects of a process's partitions. Pure.

The process reports the summary in its readiness, in its metrics and as warnings of its status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rlm.status.document import PartitionReport
from rsm.segment.ids import id_to_text

FAILING = "failing"
COPIES_FAIL = "copies fail"
LEAST_ATTEMPTS = 2  # The first retry of a copy comes soon and usually succeeds.
_MAX_CAUSES = 10
_OTHER = "other causes"


def cause_of(error: BaseException) -> str:
    """Return why a copy failed, without the identity of the segment.

    Returns the operating system's text if an OSError caused the failure.
    """
    message = getattr(error, "message", None) or type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror[0].lower() + cause.strerror[1:]
        cause = cause.__cause__
    return str(message)


def failing_copies(reports: Iterable[PartitionReport]) -> Mapping[str, int]:
    """Count the partitions with repeatedly failing copies by cause, the most frequent cause first.

    Causes are labels of a metric. So the causes after the first 10 are counted together.
    """
    found = Counter(
        str(blocked.values.get("cause") or "unknown")
        for blocked in (report.copy_blocked for report in reports)
        if blocked is not None
        and blocked.reason == FAILING
        and int(blocked.values.get("attempts", 0)) >= LEAST_ATTEMPTS
    )
    most = dict(found.most_common(_MAX_CAUSES))
    rest = sum(found.values()) - sum(most.values())
    return {**most, _OTHER: rest} if rest else most


def failing_reasons(reports: Iterable[PartitionReport]) -> Sequence[str]:
    """Return, for each cause of failing copies, a reason why the process is not ready."""
    return [
        f"{COPIES_FAIL}: {cause} ({count} {'partition' if count == 1 else 'partitions'})"
        for cause, count in failing_copies(reports).items()
    ]


def damaged_objects_warnings(reports: Iterable[PartitionReport]) -> Sequence[str]:
    """Return a warning about all damaged objects, and one for each cause of failing repairs.

    The first warning names the object whose damage was found first. Causes after the first 10 are
    left out.
    """
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
        f"{count} recorded as damaged. The first is {first.object_key} ({first.kind.label}) of"
        f" {tip.topic}:{tip.partition} segment {id_to_text(first.segment)}. See `rlm status`"
    )
    return (warning,)


def _failing_repairs(reports: Iterable[PartitionReport]) -> Sequence[str]:
    causes = Counter(each.repair_failure.cause for each in reports if each.repair_failure)
    return tuple(
        f"repairs of damaged segments fail: {cause}"
        f" ({count} {'partition' if count == 1 else 'partitions'})"
        for cause, count in causes.most_common(_MAX_CAUSES)
    )
