"""Builds the image of the code before its last change, under its own tag."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.containers import local_engine
from tests.containers.stack import CHECKOUT, environment

TAG = "previous"
_CODE = ("rlm", "rsm", "rlmm", "pyproject.toml")
_BUILT_S = 900.0


def build_image() -> str:
    """Build the image; return the short id of its commit. Raises CalledProcessError."""
    commit = commit_before_last_change(CHECKOUT)
    with TemporaryDirectory() as directory:
        _check_out(commit, Path(directory))
        variables = {**environment(), "RLM_TAG": TAG}
        if local_engine.SOCKET.exists():
            variables["DOCKER_HOST"] = variables["CONTAINER_HOST"] = f"unix://{local_engine.SOCKET}"
        script = f"{directory}/deploy/stack.sh"
        subprocess.run([script, "images"], env=variables, check=True, timeout=_BUILT_S)
    return commit


def commit_before_last_change(checkout: Path) -> str:
    """Return the short id of the commit before the last one that changed the code.

    Without that much history, it is the current commit, whose image differs in its labels only.
    """
    change = _git(checkout, "log", "-1", "--format=%H", "--", *_CODE)
    before = _git(checkout, "rev-parse", "--verify", "--quiet", "--short", f"{change}^")
    return before or _current(checkout)


def is_current(commit: str, checkout: Path = CHECKOUT) -> bool:
    """Return whether the commit of this short id is checked out."""
    return commit == _current(checkout)


def _current(checkout: Path) -> str:
    return _git(checkout, "rev-parse", "--short", "HEAD")


def _git(checkout: Path, *arguments: str) -> str:
    """Return the output of git; empty if git fails."""
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _check_out(commit: str, directory: Path) -> None:
    archive = subprocess.run(
        ["git", "archive", commit], cwd=CHECKOUT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x"], cwd=directory, input=archive.stdout, check=True)
    _take_times_of_equal_files(directory.glob("requirements*.txt"))


def _take_times_of_equal_files(paths: Iterable[Path]) -> None:
    """Copy the times of equal files: Podman compares times to find a layer that it has built."""
    for path in paths:
        current = CHECKOUT / path.name
        if current.exists() and current.read_bytes() == path.read_bytes():
            shutil.copystat(current, path)
