"""Runs a topic's retention to its end at once, instead of a share in each cycle to come.

Every decision stays the leaders' managers': they are asked what is due, and to look again at once,
until nothing is due any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError

_POLL_MS = 500


class RetentionManagers(Protocol):
    """The managers beside the leaders of a topic's partitions."""

    def due(self) -> Sequence[Mapping[str, object]]:
        """What retention would do now to each partition (rlm.status.retention_preview).

        RetriableError if one of them does not say.
        """

    def look_again(self) -> None:
        """Have all of them look at once. RetriableError."""


def run_retention(
    managers: RetentionManagers, clock: Clock, *, timeout_ms: int
) -> Sequence[Mapping[str, object]]:
    """Return what is left when nothing can be let go any more: what is held, and why.

    Raises RetriableError if that is not so in time; what was begun goes on by itself.
    """
    deadline_ms = clock.monotonic_ms() + timeout_ms
    while True:
        due = managers.due()
        left = [row for row in due if _is_due(row)]
        if not left:
            return due
        if clock.monotonic_ms() >= deadline_ms:
            raise RetriableError(
                "retention goes on in the managers: run the command again, with a longer --wait, "
                "to see its end",
                partitions_left=",".join(str(row.get("partition")) for row in left),
            )
        managers.look_again()
        clock.sleep_ms(_POLL_MS)


def _is_due(row: Mapping[str, object]) -> bool:
    """A log start that is to move, segments to delete, or local data below the log start."""
    log_start = row.get("log_start_offset")
    local_start = row.get("local_start_offset")
    behind = isinstance(log_start, int) and isinstance(local_start, int) and local_start < log_start
    moves = row.get("new_log_start_offset") != log_start
    return moves or bool(row.get("deletions")) or (behind and row.get("trim_blocked") is None)
