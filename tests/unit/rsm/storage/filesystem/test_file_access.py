"""Other users of the host cannot read a directory store's files, unless a setting allows it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rsm.storage.filesystem.file_access import FileAccess
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.contract.sources import source_of

NAME = "orders/0/segment.log"


@pytest.fixture
def set_umask() -> Iterator[Callable[[int], int]]:
    """Set this process's umask until the test ends."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


def written(root: Path, access: FileAccess | None) -> tuple[set[str], set[str]]:
    """Return the modes of all files and of all directories that a chunk with attributes creates."""
    access = FileAccess() if access is None else access
    storage = FilesystemChunkStorage(root, access=access)
    storage.create_with_content(NAME, source_of(b"records"), attributes={"role": "data"})
    storage.create("empty")
    found = list(root.rglob("*"))
    return (
        {mode_of(path) for path in found if path.is_file()},
        {mode_of(path) for path in found if path.is_dir()},
    )


def mode_of(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:04o}"


def test_create_when_the_umask_is_the_usual_one_then_other_users_can_not_read(
    root: Path, set_umask: Callable[[int], int]
) -> None:
    set_umask(0o022)
    assert written(root, None) == ({"0640"}, {"0750"})


def test_create_when_the_umask_takes_more_then_that_holds(
    root: Path, set_umask: Callable[[int], int]
) -> None:
    set_umask(0o077)
    assert written(root, None) == ({"0600"}, {"0700"})


@pytest.mark.parametrize(
    ("mode", "file_mode", "directory_mode"),
    [
        (0o600, "0600", "0700"),
        (0o640, "0640", "0750"),
        (0o644, "0644", "0755"),
        (0o660, "0660", "0770"),
    ],
)
def test_create_when_a_mode_is_set_then_exactly_that_whatever_the_umask(
    root: Path, set_umask: Callable[[int], int], mode: int, file_mode: str, directory_mode: str
) -> None:
    set_umask(0o077)
    assert written(root, FileAccess(mode=mode)) == ({file_mode}, {directory_mode})
