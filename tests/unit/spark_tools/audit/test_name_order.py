from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from spark_tools.audit.key_ranges import ExpectedRow
from spark_tools.audit.name_order import in_name_order

_LETTERS = "a/~\u00e9\uffff\U0001f600"


def _rows(count: int) -> list[ExpectedRow]:
    random = Random(count)
    names = {"".join(random.choices(_LETTERS, k=8)) for _ in range(count)}
    rows = [(name, len(name), -1, number % 2 == 0) for number, name in enumerate(sorted(names))]
    random.shuffle(rows)
    return rows


@pytest.mark.parametrize("count", [0, 1, 6, 7, 2_500])
def test_rows_when_of_several_pieces_then_ascend_by_their_names_bytes(count: int) -> None:
    """A piece holds more than is read of it at once."""
    rows = _rows(count)

    with in_name_order(rows, piece_rows=1_200) as ordered:
        found = list(ordered)

    assert found == sorted(rows, key=lambda row: row[0].encode())


def test_rows_when_not_all_are_taken_then_the_files_are_gone_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with in_name_order(_rows(50), piece_rows=10) as ordered:
        next(ordered)
        assert list(tmp_path.iterdir())

    assert not list(tmp_path.iterdir())
