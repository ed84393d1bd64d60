"""Defines what starts a child process, and the supervisor's interface to the child."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """Represents one process to keep running.

    `inherited_fds` are bound sockets that stay open across restarts; the child gets them with the
    same numbers. `http_address` is the host:port of the child's HTTP API; None if it has none.
    """

    name: str
    command: tuple[str, ...]
    inherited_fds: tuple[int, ...] = ()
    http_address: str | None = None


class Child(Protocol):
    """Represents a started process. A signal to a process that has ended has no effect."""

    @property
    def pid(self) -> int:
        """Return the process id."""

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while the child runs. Never blocks."""

    def reload(self) -> None:
        """Send SIGHUP."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def write_stacks(self) -> None:
        """Send SIGQUIT: a worker writes the stacks of its threads."""

    def kill(self) -> None:
        """Send SIGKILL."""


class Spawner(Protocol):
    """Starts child processes."""

    def spawn(self, spec: ChildSpec) -> Child:
        """Start a child; raise RetriableError if the system cannot start it now."""
