"""How tests are divided among the workers of a run, and in which order they are handed out.

The tests of a file run in one worker, one after the other, because they share what the file's
fixtures have set up. Folders whose tests share something expensive (three brokers, a Spark session)
are one unit. What takes longest begins first, so that no worker is left alone with it at the end;
among equals the order stays random.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

_WHOLE_FOLDERS = (
    "tests/architecture",
    "tests/hosts",
    "tests/e2e/three_brokers",
    "tests/integration/spark_tools",
    "tests/integration/rlm/gateway/security",
)
_LONGEST_FIRST = (*_WHOLE_FOLDERS[1:], "tests/e2e", "tests/integration", "tests/simulation")


class WorkUnits(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist ships untyped
    """xdist's scheduler of scopes, with these units as its scopes."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """The folder or file whose tests run together with this one."""
    path = nodeid.partition("::")[0]
    return next((folder for folder in _WHOLE_FOLDERS if is_below(path, folder)), path)


def rank(nodeid: str) -> int:
    """What is to begin earlier has a lower one."""
    path = nodeid.partition("::")[0]
    places = (place for place, folder in enumerate(_LONGEST_FIRST) if is_below(path, folder))
    return next(places, len(_LONGEST_FIRST))


def is_below(path: str, folder: str) -> bool:
    """Whether a file, by its path from the checkout, is in a folder or deeper."""
    return PurePosixPath(path).is_relative_to(folder)
