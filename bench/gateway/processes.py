"""Reads the processor time and memory of groups of processes from /proc."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import psutil

_MANAGER = "manager-process"


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Represents a group of processes. Each call looks up its current members."""

    find: Callable[[], list[psutil.Process]]

    def cpu_s(self) -> float:
        """Return the processor seconds of the members so far, in user and system mode."""
        times = [process.cpu_times() for process in self.find()]
        used: list[float] = [each.user + each.system for each in times]
        return sum(used)

    def resident_bytes(self) -> int:
        """Return the resident memory. A shared page counts once for each member."""
        resident: list[int] = [process.memory_info().rss for process in self.find()]
        return sum(resident)


def process_tree(pid: int) -> ProcessGroup:
    """Return the group of a process and its descendants."""
    root = psutil.Process(pid)
    return ProcessGroup(lambda: [root, *root.children(recursive=True)])


def gateway_under(supervisor_pid: int) -> ProcessGroup:
    """Return the group of all processes of `rlm run` except the supervisor and the manager."""
    supervisor = psutil.Process(supervisor_pid)

    def find() -> list[psutil.Process]:
        found = []
        for child in supervisor.children():
            if _MANAGER not in child.cmdline():
                found += [child, *child.children(recursive=True)]
        return found

    return ProcessGroup(find)
