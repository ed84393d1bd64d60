"""The number of the scrub's pass, which restarts do not reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.process.scrub_pass_number import StoredScrubPassNumber


def _restarted(directory: Path, any_number: int = 70) -> StoredScrubPassNumber:
    return StoredScrubPassNumber(directory / "manager" / "scrub_pass", lambda _: any_number)


def test_pass_when_it_has_ended_then_the_next_number_over_restarts(tmp_path: Path) -> None:
    first = _restarted(tmp_path)
    before = first.begin()
    first.end()

    assert (before, _restarted(tmp_path, 7).begin()) == (70, 71)


def test_pass_when_it_was_interrupted_then_the_same_number_again_but_not_always(
    tmp_path: Path,
) -> None:
    numbers = [_restarted(tmp_path).begin() for _ in range(7)]

    assert numbers == [70, 70, 70, 70, 70, 71, 71]


@pytest.mark.parametrize("text", ["", "x", "1", "1 2 3"])
def test_pass_when_the_file_holds_anything_else_then_any_number(tmp_path: Path, text: str) -> None:
    (tmp_path / "manager").mkdir()
    (tmp_path / "manager" / "scrub_pass").write_text(text)

    assert _restarted(tmp_path, 5).begin() == 5


def test_pass_when_the_directory_cannot_be_used_then_continues_counting(tmp_path: Path) -> None:
    (tmp_path / "manager").write_text("a file where the directory should be")
    number = _restarted(tmp_path)
    before = number.begin()
    number.end()

    assert (before, number.begin()) == (70, 71)
