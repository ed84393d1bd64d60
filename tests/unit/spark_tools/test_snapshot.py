"""How long a job waits for the metadata topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.metrics import MetadataMetrics
from rlmm.spi import Readiness, UnreadyReason
from spark_tools.snapshot import wait_while_reading


class ReadingManager:
    """A manager with this number of events left after each wait; None: it is ready.

    New events keep arriving.
    """

    def __init__(self, missing: Sequence[int | None]) -> None:
        self.waits = 0
        self._missing: Iterator[int | None] = iter(missing)
        self._now: int | None = 0

    def wait_ready(self, _timeout_ms: int) -> Readiness:
        self.waits += 1
        self._now = next(self._missing)
        ready = self._now is None
        return Readiness(
            is_ready=ready, reason="", kind=None if ready else UnreadyReason.CATCHING_UP
        )

    def metrics(self) -> MetadataMetrics:
        return MetadataMetrics(is_ready=False, missing_events_count=self._now or 0)


@pytest.mark.parametrize(
    ("missing", "ready"),
    [
        ([None], True),
        ([9, 5, 1, None], True),
        ([9, 9], False),
        ([9, 5, 5], False),
        ([0], False),
    ],
)
def test_wait_when_what_is_waited_for_comes_then_continues_else_ends(
    missing: list[int | None], *, ready: bool
) -> None:
    """The wait also ends if one partition has no leader while others are written to."""
    manager = ReadingManager(missing)

    found = wait_while_reading(cast("TopicBasedRemoteLogMetadataManager", manager), 10)

    assert (found.is_ready, manager.waits) == (ready, len(missing))
