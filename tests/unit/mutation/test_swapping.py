from __future__ import annotations

import pytest

from rsm.segment.ranges import OffsetRange
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.swapping import LoadedFunctions

FILE = "rsm/segment/ranges.py"


def _mutants(function: str) -> list[Mutant]:
    return [mutant for mutant in mutants_of(FILE) if mutant.function == function]


def test_swap_when_a_function_differs_then_the_loaded_one_becomes_the_mutant() -> None:
    (swap,) = (LoadedFunctions().swap_for(m) for m in _mutants("OffsetRange.__contains__")[:1])
    assert swap is not None
    part = OffsetRange(start_offset=5, end_offset=9)
    original = [(function, function.__code__) for function, _ in swap.codes]

    before = [offset in part for offset in (4, 5, 8, 9)]
    swap.apply()
    after = [offset in part for offset in (4, 5, 8, 9)]
    for function, code in original:
        function.__code__ = code

    assert before == [False, True, True, False]
    assert after != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class OffsetRange:", "class OffsetRange:\n    x = 1"),
        ("end_offset: int", "end_offset: int = 0"),
    ],
)
def test_swap_when_a_class_body_differs_then_an_import_is_needed(old: str, new: str) -> None:
    mutant = _mutants("OffsetRange.__contains__")[0]
    original = mutant.source.replace(mutant.after, mutant.before)
    changed = Mutant(
        **{
            **{name: getattr(mutant, name) for name in Mutant.__slots__},
            "source": original.replace(old, new, 1),
        }
    )

    assert changed.source != original
    assert LoadedFunctions().swap_for(changed) is None
