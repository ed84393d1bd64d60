"""Finds the engine for the container tests; if none answers, root on Debian sets one up.

As a program it builds the images of rlm, so that the tests find them. `make test` runs it while the
tests of other levels run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.containers import local_engine, previous_version
from tests.containers.stack import SCRIPT
from tests.services.containers.engine import Engine, find_engine
from tests.services.service import ServiceError, ServiceMissingError

WAY_OUT = (
    "Start Docker or Podman's socket and run `make test-containers`,"
    " or run that as root on Debian, where it sets up an engine."
    " `make test CONTAINERS=0` leaves these tests out."
)


@contextmanager
def engine_that_answers() -> Iterator[Engine]:
    """Yield the engine that answers; if none does, run a local one until the block ends.

    Raises SetUpError with the output of the set-up.
    """
    engine = _answering()
    if engine is not None:
        yield engine
        return
    _run_local_engine("up")
    try:
        yield find_engine()
    finally:
        _run_local_engine("down")


def main() -> int:
    """Build both images of rlm with the engine that answers, or with one set up for this."""
    try:
        with engine_that_answers():
            subprocess.run([SCRIPT, "images"], stdin=subprocess.DEVNULL, check=True)
            previous_version.build_image()
    except (ServiceError, local_engine.SetUpError, subprocess.CalledProcessError) as error:
        print(f"cannot prepare the tests of containers: {error} {WAY_OUT}", file=sys.stderr)
        return 1
    return 0


def _run_local_engine(command: str) -> None:
    """Run the command in its own process, so that the service is no child of this process."""
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


if __name__ == "__main__":
    sys.exit(main())
