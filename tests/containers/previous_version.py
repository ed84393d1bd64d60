"""The image of the previous commit, by its tag."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.containers import local_engine
from tests.containers.stack import CHECKOUT, environment

TAG = "previous"
_BUILT_S = 900.0


def build_image() -> str:
    """Build it, and return the name of its commit.

    Without history, that is the current commit; its image differs all the same. Raises
    CalledProcessError.
    """
    with TemporaryDirectory() as directory:
        commit = _check_out(Path(directory))
        variables = {**environment(), "RLM_TAG": TAG}
        if local_engine.SOCKET.exists():
            variables["DOCKER_HOST"] = variables["CONTAINER_HOST"] = f"unix://{local_engine.SOCKET}"
        script = f"{directory}/deploy/stack.sh"
        subprocess.run([script, "images"], env=variables, check=True, timeout=_BUILT_S)
    return commit


def _check_out(directory: Path) -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "HEAD^^{commit}"],
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )
    commit = "HEAD" if found.returncode else "HEAD^"
    archive = subprocess.run(
        ["git", "archive", commit], cwd=CHECKOUT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x"], cwd=directory, input=archive.stdout, check=True)
    _take_times_of_equal_files(directory.glob("requirements*.txt"))
    return commit


def _take_times_of_equal_files(paths: Iterable[Path]) -> None:
    """Podman compares times, too, when it looks for a layer that it has already built."""
    for path in paths:
        current = CHECKOUT / path.name
        if current.exists() and current.read_bytes() == path.read_bytes():
            shutil.copystat(current, path)
