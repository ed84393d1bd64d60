"""A child process: what starts it, and the interface by which the supervisor handles it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """One process to keep running.

    `inherited_fds` (listening sockets) stay open over restarts and have the same numbers in the
    child. `http_address` is host:port of its HTTP API, None if it has none.
    """

    name: str
    command: tuple[str, ...]
    inherited_fds: tuple[int, ...] = ()
    http_address: str | None = None


class Child(Protocol):
    """A started process. Sending a signal to one that has ended does nothing."""

    @property
    def pid(self) -> int:
        """The process id."""

    def exit_code(self) -> int | None:
        """None while it runs, negative for the signal that ended it; never blocks."""

    def terminate(self) -> None:
        """Ask it to stop (SIGTERM)."""

    def kill(self) -> None:
        """End it (SIGKILL)."""


class Spawner(Protocol):
    """Starts processes."""

    def spawn(self, spec: ChildSpec) -> Child:
        """Start one; RetriableError if the system cannot now."""
