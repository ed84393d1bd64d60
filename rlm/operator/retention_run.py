"""Applies a topic's retention completely now, instead of one share per cycle.

The leaders' managers still make every decision. This module asks the managers what is due, and
requests cycles until nothing is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rlm.status.retention_preview import RetentionPreview
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError

_POLL_MS = 500


class RetentionManagers(Protocol):
    """Represents the managers of the brokers that lead a topic's partitions."""

    def due(self) -> Sequence[RetentionPreview]:
        """Return what retention would do to each partition now.

        Raises RetriableError if a manager does not answer.
        """

    def run_cycles(self) -> None:
        """Request a cycle from each manager. Raises RetriableError if one does not answer."""


def run_retention(
    managers: RetentionManagers, clock: Clock, *, timeout_ms: int
) -> Sequence[RetentionPreview]:
    """Run cycles until nothing is due; return the final previews, with blocked trims and expiry.

    Raises RetriableError at the time limit; the managers then continue by themselves.
    """
    deadline_ms = clock.monotonic_ms() + timeout_ms
    while True:
        due = managers.due()
        left = [preview for preview in due if _is_due(preview)]
        if not left:
            return due
        if clock.monotonic_ms() >= deadline_ms:
            raise RetriableError(
                "cannot wait longer: retention continues, but has not ended in time",
                partitions_left=",".join(str(preview.partition) for preview in left),
                advice="Run the command again, with a longer --wait, to see its end",
            )
        managers.run_cycles()
        clock.sleep_ms(_POLL_MS)


def _is_due(preview: RetentionPreview) -> bool:
    """Return whether retention still moves the log start, deletes segments, or trims."""
    log_start = preview.log_start_offset
    is_below_log_start = log_start is not None and preview.local_start_offset < log_start
    moves = preview.new_log_start_offset != log_start
    return moves or bool(preview.deletions) or (is_below_log_start and preview.trim_blocked is None)
