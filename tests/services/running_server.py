"""A server that was started, as a process of this machine or in a container."""

from __future__ import annotations

from abc import ABC, abstractmethod


class RunningServer(ABC):
    """Signals and observes one server. Not thread-safe; can be started only once."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id on this machine, also the id of the process's group."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """Return the exit code; None while the server runs."""

    @abstractmethod
    def terminate(self, *, deadline_s: float = 30.0) -> int:
        """Send SIGTERM and wait; past the deadline SIGKILL. Returns the exit code."""

    @abstractmethod
    def kill(self, *, children: bool = False) -> None:
        """Send SIGKILL, with `children` to its process group; return when the server is gone."""

    @abstractmethod
    def log_tail(self) -> str:
        """Return the end of its output."""
