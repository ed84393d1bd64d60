"""Finds the engine of the tests of containers; root on Debian sets one up if none answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.containers import local_engine
from tests.services.containers.engine import Engine, find_engine
from tests.services.service import ServiceMissingError

WAY_OUT = (
    "Start Docker or Podman's socket and run `make test-containers`,"
    " or run that as root on Debian, where it sets up an engine."
)


@contextmanager
def engine_that_answers() -> Iterator[Engine]:
    """The engine that answers; without one, a local one with images of the stack, until the end.

    Raises SetUpError with what that printed.
    """
    engine = _answering()
    if engine is not None:
        yield engine
        return
    _run_local_engine("stack")
    try:
        yield find_engine()
    finally:
        _run_local_engine("down")


def _run_local_engine(command: str) -> None:
    """Run it in a process of its own: the service that it starts is no child of this one."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.containers.local_engine", command],
        cwd=local_engine.CHECKOUT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise local_engine.SetUpError(done.stderr.strip())


def _answering() -> Engine | None:
    try:
        return find_engine()
    except ServiceMissingError:
        return None
