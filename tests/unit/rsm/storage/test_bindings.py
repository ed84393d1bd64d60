from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from rsm.storage.bindings import open_storage
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.settings import FilesystemSettings


def test_open_when_backend_is_filesystem_then_in_its_root(tmp_path: Path) -> None:
    storage = open_storage(FilesystemSettings(root=tmp_path))

    storage.create("a")
    assert isinstance(storage, FilesystemChunkStorage)
    assert (tmp_path / "a").exists()


def test_open_when_root_is_not_there_then_an_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="cannot access the store's root"):
        open_storage(FilesystemSettings(root=tmp_path / "absent"))
