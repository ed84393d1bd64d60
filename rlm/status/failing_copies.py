"""Partitions whose copies fail, counted by cause: for readiness and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rlm.status.report import PartitionReport

FAILING = "failing"
_LEAST_ATTEMPTS = 2  # one that failed is made again soon, and most succeed then
_MAX_CAUSES = 10
_OTHER = "other causes"


def cause_of(error: BaseException) -> str:
    """Why a copy failed, without what it happened to: the system's own words where it has some."""
    message = getattr(error, "message", None) or type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror[0].lower() + cause.strerror[1:]
        cause = cause.__cause__
    return str(message)


def failing_copies(reports: Iterable[PartitionReport]) -> Mapping[str, int]:
    """How many partitions could not be copied in their last attempts, by cause, most first.

    What is beyond so many causes is counted together: they are labels of a metric.
    """
    found = Counter(
        str(blocked.values.get("cause") or "unknown")
        for blocked in (report.copy_blocked for report in reports)
        if blocked is not None
        and blocked.reason == FAILING
        and int(blocked.values.get("attempts", 0)) >= _LEAST_ATTEMPTS
    )
    most = dict(found.most_common(_MAX_CAUSES))
    rest = sum(found.values()) - sum(most.values())
    return {**most, _OTHER: rest} if rest else most


def failing_reasons(reports: Iterable[PartitionReport]) -> Sequence[str]:
    """The same as sentences of a process that is not ready."""
    return [
        f"copies fail: {cause} ({count} {'partition' if count == 1 else 'partitions'})"
        for cause, count in failing_copies(reports).items()
    ]
