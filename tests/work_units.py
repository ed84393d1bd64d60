"""How tests are divided among the workers of a run, and in which order they are handed out.

The tests of a file run in one worker, one after the other, because they share what the file's
fixtures have set up. Folders whose tests share something expensive (three brokers, a Spark session)
are one unit, and a package to pytest: what they share ends with them, for three idle brokers with
their managers take half a processor. What takes longest begins first, so that no worker is left
alone with it at the end. The Spark session is between the two folders of three brokers: with two
workers the second cluster mostly starts when the first has ended. Nothing enforces it, so tests of
three brokers must bear leaders that move under load. Among equals the order stays random.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling

_CHECKOUT = Path(__file__).parents[1]
_WHOLE_FOLDERS = (
    "tests/architecture",
    "tests/hosts",
    "tests/integration/spark_tools",
    "tests/e2e/three_brokers",
    "tests/integration/rlm/gateway/security",
)
_LONGEST_FIRST = (*_WHOLE_FOLDERS[1:], "tests/e2e", "tests/integration", "tests/simulation")


class WorkUnits(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist ships untyped
    """xdist's scheduler of scopes, with these units as its scopes."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


class WholeFolder(pytest.Package):
    """A folder that is one unit: fixtures of the scope "package" end with its last test."""

    def setup(self) -> None:
        """Nothing: there is no `__init__.py`."""


def is_whole_folder(path: Path) -> bool:
    """Whether this directory is one unit; `path` is absolute."""
    return path.is_relative_to(_CHECKOUT) and str(path.relative_to(_CHECKOUT)) in _WHOLE_FOLDERS


def unit_of(nodeid: str) -> str:
    """The folder or file whose tests run together with this one."""
    return _unit_of_file(nodeid.partition("::")[0])


def rank(nodeid: str) -> int:
    """What is to begin earlier has a lower one."""
    return _rank_of_file(nodeid.partition("::")[0])


@cache
def _unit_of_file(path: str) -> str:
    return next((folder for folder in _WHOLE_FOLDERS if is_below(path, folder)), path)


@cache
def _rank_of_file(path: str) -> int:
    places = (place for place, folder in enumerate(_LONGEST_FIRST) if is_below(path, folder))
    return next(places, len(_LONGEST_FIRST))


def is_below(path: str, folder: str) -> bool:
    """Whether a file, by its path from the checkout, is in a folder or deeper."""
    return PurePosixPath(path).is_relative_to(folder)
