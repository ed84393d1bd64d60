"""The commit that tests.containers upgrades from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.containers.previous_version import commit_before_last_change, is_current


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository without a commit."""
    _git(tmp_path, "init", "--quiet")
    return tmp_path


def _git(checkout: Path, *arguments: str) -> str:
    author = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    command = ["git", "-C", str(checkout), *author, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _commit(checkout: Path, path: str, text: str) -> str:
    """Commit a file, and return the commit's short id."""
    (checkout / path).parent.mkdir(exist_ok=True)
    (checkout / path).write_text(text)
    _git(checkout, "add", path)
    _git(checkout, "commit", "--quiet", "--no-gpg-sign", "--message", text)
    return _git(checkout, "rev-parse", "--short", "HEAD")


def test_previous_version_when_later_commits_change_only_docs_then_has_other_code(
    checkout: Path,
) -> None:
    _commit(checkout, "rlm/code.py", "one")
    before = _commit(checkout, "docs/page.md", "page")
    _commit(checkout, "rlm/code.py", "two")
    _commit(checkout, "docs/page.md", "better page")

    assert commit_before_last_change(checkout) == before
    assert not is_current(before, checkout)


def test_previous_version_when_there_is_no_other_commit_then_is_the_current_one(
    checkout: Path,
) -> None:
    only = _commit(checkout, "rlm/code.py", "one")

    assert commit_before_last_change(checkout) == only
    assert is_current(only, checkout)
