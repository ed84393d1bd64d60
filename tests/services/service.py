"""The base of all servers that tests start: each runs within a `with` block."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

BUILD = Path(__file__).resolve().parents[2] / "build"


class ServiceError(Exception):
    """A service that tests need does not run; the message names it and says why."""


class ServiceMissingError(ServiceError):
    """This machine lacks what a service needs: a tool, a port, a program that make installs.

    No test that needs it can pass, so the run ends.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Programs of the machine, and files that make installs below build/.

    A module that looks up either has a `NEEDS` of this class: before its first test, a run looks
    up all of them (tests.run_needs).
    """

    programs: tuple[str, ...] = ()
    installed: tuple[Path, ...] = ()


def require(needed: Iterable[Needs]) -> None:
    """Raise a ServiceMissingError that names everything that the machine lacks, if any."""
    every = list(needed)
    lookups = [partial(program, name) for each in every for name in each.programs]
    lookups += [partial(installed, path) for each in every for path in each.installed]
    lacking = []
    for look_up in lookups:
        try:
            look_up()
        except ServiceMissingError as error:
            lacking.append(str(error))
    if lacking:
        raise ServiceMissingError(" ".join(dict.fromkeys(lacking)))


def program(name: str) -> str:
    """Return the path of a program of the machine. Raises ServiceMissingError."""
    found = shutil.which(name)
    if found is None:
        raise ServiceMissingError(f"{name} is not on the PATH. Install it.")
    return found


def installed(path: Path) -> str:
    """Return the path of something that make installs below build/. Raises ServiceMissingError.

    A directory without files counts as missing.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        raise ServiceMissingError(f"{path.name} is not in {path.parent}. {_advice(path)}")
    return str(path)


def _advice(path: Path) -> str:
    """Return what to do: make treats an existing directory as complete."""
    if not path.is_relative_to(BUILD):
        return "Install it there."
    directory = BUILD / path.relative_to(BUILD).parts[0]
    return f"Remove {directory} and run `make services`."


class Service(ABC):
    """A server that starts when its block begins, and ends with the block, also after errors."""

    @abstractmethod
    def start(self) -> None:
        """Start the server, and return when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End the server, if it was started."""

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
