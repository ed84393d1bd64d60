"""Starts managers that kill themselves at an effect, and waits for that (crashing_manager)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.metadata import SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_KILLED_WITHIN_S = 90.0
_CLEAN_WITHIN_S = 60.0


@contextmanager
def journaling(host: BrokerHost, journal: Path, *options: str) -> Iterator[ServiceProcess]:
    """Run a manager that logs its effects; `options` go to tests.e2e.crashing_manager."""
    with host.started(
        *("-m", "tests.e2e.crashing_manager", "--config", str(host.config_path)),
        *("--journal", str(journal), *options),
    ) as process:
        yield process


@contextmanager
def killed_at(
    label: str, host: BrokerHost, journal: Path, *, once: Path | None = None
) -> Iterator[None]:
    """Run a manager that kills itself at an effect; wait for its end when the block ends.

    With `once`, it counts effects only after that file exists.
    """
    counted = () if once is None else ("--once", str(once))
    with journaling(host, journal, "--die-at", label, *counted) as process:
        yield
        code = process.wait(deadline_s=_KILLED_WITHIN_S)
        effects = journal.read_text().splitlines() if journal.exists() else []
        assert (code, effects[-1:]) == (-signal.SIGKILL, [label]), process.log_tail()


def wait_clean(log: TieredLog, metadata: RemoteLogMetadataManager) -> None:
    """Wait until the store has the objects of finished segments and no others."""

    def is_clean() -> bool:
        finished = log.finished(metadata)
        return log.segment_keys() == {
            stored.key for each in finished for stored in each.objects
        } and not log.in_states(
            metadata, SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED
        )

    wait_until(is_clean, _CLEAN_WITHIN_S, "what the killed process left is gone")
