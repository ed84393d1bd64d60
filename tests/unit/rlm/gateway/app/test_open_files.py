"""The limit of open files, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import logging, resource, sys
from rlm.gateway.app.open_files import raise_open_file_limit, warn_of_few_open_files
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
warn_of_few_open_files(raise_open_file_limit(), connection_count=connections)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def _lines(*, soft: int, hard: int, connections: int) -> list[str]:
    arguments = [str(each) for each in (soft, hard, connections)]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_limit_when_the_engine_sets_a_low_soft_one_then_is_raised_to_the_hard_one() -> None:
    assert _lines(soft=256, hard=3024, connections=1000) == [
        "INFO raised the limit of open files before=256 limit=3024",
        "3024 3024",
    ]


@pytest.mark.parametrize(("connections", "warns"), [(1000, False), (1001, True)])
def test_limit_when_it_cannot_be_raised_then_warns_only_if_clients_need_more(
    connections: int, *, warns: bool
) -> None:
    *warnings, limits = _lines(soft=3024, hard=3024, connections=connections)

    assert limits == "3024 3024"
    assert len(warnings) == warns
    assert all("limit=3024 needed=3026 connections=1001" in each for each in warnings)
