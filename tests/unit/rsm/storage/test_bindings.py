from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from rsm.storage.bindings import open_storage
from rsm.storage.filesystem import FilesystemChunkStorage


def test_open_when_backend_is_filesystem_then_in_its_root(tmp_path: Path) -> None:
    storage = open_storage("filesystem", {"root": str(tmp_path)})

    storage.create("a")
    assert isinstance(storage, FilesystemChunkStorage)
    assert (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("backend", "settings", "told"),
    [
        ("filesytem", {"root": "x"}, "expected=filesystem"),
        ("memory", {}, "expected=filesystem"),
        ("filesystem", {}, r"key=rsm\.config\.storage\.filesystem\.root"),
        ("filesystem", {"rooot": "x"}, r"nearest=rsm\.config\.storage\.filesystem\.root"),
    ],
)
def test_open_when_configuration_is_wrong_then_told_what_is_expected(
    backend: str, settings: dict[str, str], told: str
) -> None:
    with pytest.raises(InvalidConfigError, match=told):
        open_storage(backend, settings)
