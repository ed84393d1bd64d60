"""A server that was started, whether it is a process of this machine or a container."""

from __future__ import annotations

from abc import ABC, abstractmethod


class RunningServer(ABC):
    """Signals and observes one server. Not thread-safe; not to be started twice."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id on this machine, also the id of the process's group."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""

    @abstractmethod
    def terminate(self, *, deadline_s: float = 30.0) -> int:
        """Send SIGTERM and wait; past the deadline SIGKILL. Returns the exit code."""

    @abstractmethod
    def kill(self, *, children: bool = False) -> None:
        """Send SIGKILL, also to its process group if `children`; returns when it is gone."""

    @abstractmethod
    def log_tail(self) -> str:
        """The end of its output."""
