"""What a server that a test starts has in common with the others: it runs within a `with` block."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self


class ServiceError(Exception):
    """A service that tests need does not run; the message names it and says why."""


class ServiceMissingError(ServiceError):
    """This machine lacks what a service needs: a tool, a port, a program that make installs.

    No test that needs it can pass, so the run ends.
    """


def program(name: str) -> str:
    """The path of a program of the machine's own. Raises ServiceMissingError."""
    found = shutil.which(name)
    if found is None:
        raise ServiceMissingError(f"{name} is not on the PATH. Install it.")
    return found


def installed(path: Path) -> str:
    """The path of something that make installs below build/. Raises ServiceMissingError."""
    if not path.exists():
        raise ServiceMissingError(f"{path.name} is not in {path.parent}. Run `make services`.")
    return str(path)


class Service(ABC):
    """Started when its block begins, gone when that ends, however it does."""

    @abstractmethod
    def start(self) -> None:
        """Return when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End it, once it was started."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
