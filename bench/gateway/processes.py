"""What groups of processes have used: processor time and memory, as /proc tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import psutil

_MANAGER = "rlm.cli.host.manager"


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes that are there when it is asked, found again each time."""

    find: Callable[[], list[psutil.Process]]

    def cpu_s(self) -> float:
        """Seconds on a processor so far, in user and system mode."""
        times = [process.cpu_times() for process in self.find()]
        used: list[float] = [each.user + each.system for each in times]
        return sum(used)

    def resident_bytes(self) -> int:
        """Memory that is resident now; what they share counts for each."""
        resident: list[int] = [process.memory_info().rss for process in self.find()]
        return sum(resident)


def process_tree(pid: int) -> ProcessGroup:
    """A process and all below it."""
    root = psutil.Process(pid)
    return ProcessGroup(lambda: [root, *root.children(recursive=True)])


def gateway_under(supervisor_pid: int) -> ProcessGroup:
    """All that `rlm run` has started, but the manager."""
    supervisor = psutil.Process(supervisor_pid)

    def find() -> list[psutil.Process]:
        found = []
        for child in supervisor.children():
            if _MANAGER not in child.cmdline():
                found += [child, *child.children(recursive=True)]
        return found

    return ProcessGroup(find)
