"""Retention run to its end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rlm.operator.retention_run import run_retention
from rlm.policy.blocked import Blocked
from rlm.status.retention_preview import RetentionPreview
from rsm.segment.errors import RetriableError
from tests.fakes.clock import FakeClock


class Managers:
    """Each cycle expires ten offsets up to `end`, and reports `blocked`."""

    def __init__(self, *, end: int, blocked: str | None = None) -> None:
        self.start = 0
        self.looks = 0
        self._end = end
        self._blocked = blocked

    def due(self) -> Sequence[RetentionPreview]:
        preview = RetentionPreview(
            topic="orders",
            partition=0,
            log_start_offset=self.start,
            new_log_start_offset=min(self.start + 10, self._end),
            local_start_offset=self.start,
            new_local_start_offset=self.start,
            expiry_blocked=None if self._blocked is None else Blocked(reason=self._blocked),
        )
        return [preview]

    def run_cycles(self) -> None:
        self.looks += 1
        self.start = min(self.start + 10, self._end)


def test_run_when_each_cycle_expires_a_share_then_continues_to_the_end() -> None:
    managers = Managers(end=35)

    left = run_retention(managers, FakeClock(), timeout_ms=60_000)

    assert (managers.start, managers.looks) == (35, 4)
    assert left[0].new_log_start_offset == 35


def test_run_when_the_rest_is_held_then_ends_and_says_so() -> None:
    managers = Managers(end=0, blocked="read_lease")

    left = run_retention(managers, FakeClock(), timeout_ms=60_000)

    assert managers.looks == 0
    assert left[0].expiry_blocked == Blocked(reason="read_lease")


def test_run_when_it_takes_too_long_then_says_that_it_continues() -> None:
    with pytest.raises(RetriableError, match="retention continues"):
        run_retention(Managers(end=1_000_000), FakeClock(), timeout_ms=2_000)
