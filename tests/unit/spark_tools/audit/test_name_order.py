from __future__ import annotations

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
    """A piece is larger than one read."""
    rows = _rows(count)

    with in_name_order(rows, piece_rows=1_200) as ordered:
        found = list(ordered)

    assert found == sorted(rows, key=lambda row: row[0].encode())
