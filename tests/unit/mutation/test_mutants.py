from __future__ import annotations

import pytest

from tests.mutation.mutants import MODULE_LEVEL, drawn, mutants_of_source

TABLE = "LIMITS = {'a': 3}\n"
PROPERTY = """class Range:
    @property
    def is_empty(self) -> bool:
        return self.end <= self.start
"""


def _changes(source: str) -> set[str]:
    return {mutant.after for mutant in mutants_of_source("some/file.py", source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b\n", {"x = a <= b"}),
        ("x = a in b\n", {"x = a not in b"}),
        ("x = a and b\n", {"x = a or b"}),
        ("x = a + 1\n", {"x = a - 1", "x = a + 2"}),
        ("x = all(a)\n", {"x = any(a)"}),
        ("x = min(a, b)\n", {"x = max(a, b)", "x = min(b)", "x = min(a, )"}),
        ("x = a[b:c]\n", {"x = a[:c]", "x = a[b:]"}),
        ("if a:\n    b()\n", {"if ((a) or True):", "if ((a) and False):", "pass"}),
        ("raise ValueError(f'{a + 1}')\n", {"pass"}),
        ("x: int | None = f(a, 'text')\n", {"x: int | None = f('text')", "x: int | None = f(a, )"}),
    ],
)
def test_mutants_when_found_then_each_decision_is_changed(source: str, expected: set[str]) -> None:
    assert _changes(source) == expected


@pytest.mark.parametrize(
    "source",
    ["assert a < b\n", "x = Part(a=a, b=b)\n", "import a\n", "x = 'text'\n", "x = len(a)\n"],
)
def test_mutants_when_nothing_is_decided_then_none(source: str) -> None:
    assert _changes(source) == set()


def test_mutants_when_code_is_decorated_or_a_table_then_found_too() -> None:
    (of_table,) = mutants_of_source("some/file.py", TABLE)
    (of_property,) = mutants_of_source("some/file.py", PROPERTY)

    assert (of_table.function, of_table.after) == (MODULE_LEVEL, "LIMITS = {'a': 4}")
    assert (of_property.function, of_property.line) == ("Range.is_empty", 4)


def test_mutant_when_one_line_changes_then_the_other_lines_stay() -> None:
    (mutant,) = mutants_of_source("some/file.py", PROPERTY)

    changed = mutant.source.splitlines()
    assert changed[:3] == PROPERTY.splitlines()[:3]
    assert changed[3].strip() == mutant.after == "return self.end < self.start"


def test_sample_when_drawn_with_a_seed_then_is_the_same_again_and_in_order() -> None:
    mutants = mutants_of_source("some/file.py", "".join(f"x = {i}\n" for i in range(50)))

    first = drawn(mutants, seed="7", at_most=10)

    assert first == drawn(mutants, seed="7", at_most=10)
    assert first != drawn(mutants, seed="8", at_most=10)
    assert [one.line for one in first] == sorted(one.line for one in first)
    assert drawn(mutants, seed="7", at_most=50) == mutants
