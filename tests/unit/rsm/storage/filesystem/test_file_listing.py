from __future__ import annotations

import os
from pathlib import Path

from rsm.storage.filesystem.file_listing import ordered_files


def test_listing_when_directory_is_larger_than_a_page_then_complete_and_in_order(
    tmp_path: Path,
) -> None:
    names = sorted(f"d{n % 4}/{n:02d}" for n in range(40))
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert list(ordered_files(tmp_path, prefix="", after="", page_names=3)) == names
    assert next(ordered_files(tmp_path, prefix="d2/", after="d2/10", page_names=3)) == "d2/14"


def test_listing_when_names_are_foreign_then_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "lost+found" / "x").touch()
    os.mkfifo(tmp_path / "pipe")
    with open(os.fsencode(tmp_path) + b"/not-utf8-\xff", "wb"):  # noqa: PTH123 - a name of bytes
        pass

    assert list(ordered_files(tmp_path, prefix="", after="")) == ["file"]
