"""The warning of a nearly full disk below the state directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlm.process.state_dir import nearly_full_disk

ENOUGH_BYTES = 1 << 30


def having(free_bytes: int, asked: list[Path]) -> Callable[[Path], SimpleNamespace]:
    def usage(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(free=free_bytes)

    return usage


def test_disk_when_it_has_less_than_a_gib_then_the_warning_says_how_much_and_what_to_do(
    tmp_path: Path,
) -> None:
    found = nearly_full_disk(tmp_path, having(ENOUGH_BYTES - 1, []))

    assert found is not None
    assert str(found) == (
        f"the disk of the state directory is nearly full (key=state.dir, path={tmp_path}, "
        "free_bytes=1073741823, least_bytes=1073741824). Free space: a process is not ready "
        "without space for its copy of the metadata."
    )


def test_disk_when_it_has_enough_then_no_warning(tmp_path: Path) -> None:
    assert nearly_full_disk(tmp_path, having(ENOUGH_BYTES, [])) is None


def test_disk_when_the_directory_is_not_there_yet_then_that_of_its_nearest_parent(
    tmp_path: Path,
) -> None:
    asked: list[Path] = []

    assert nearly_full_disk(tmp_path / "a" / "b", having(0, asked)) is not None
    assert asked == [tmp_path]


@pytest.mark.parametrize("error", [OSError("stale"), PermissionError("denied")])
def test_disk_when_it_cannot_be_read_then_no_warning(error: OSError, tmp_path: Path) -> None:
    def usage(_: Path) -> SimpleNamespace:
        raise error

    assert nearly_full_disk(tmp_path, usage) is None
