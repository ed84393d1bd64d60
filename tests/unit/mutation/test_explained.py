from __future__ import annotations

from dataclasses import replace

import pytest

from tests.mutation.explained import EXPLAINED_FILE, Explanation, outdated, read_explanations
from tests.mutation.groups import CHECKOUT
from tests.mutation.mutants import mutants_of_source

FILE = "some/file.py"
MUTANTS = {FILE: mutants_of_source(FILE, "def f(a, b):\n    return a < b\n")}
EXPLANATION = Explanation(
    file=FILE, function="f", before="return a < b", after="return a <= b", reason="a is never b"
)


def test_explanation_when_its_mutant_is_found_then_is_current() -> None:
    assert outdated([EXPLANATION], MUTANTS) == []


def test_explanation_when_code_has_changed_then_is_outdated() -> None:
    old = replace(EXPLANATION, before="return b > a")

    assert outdated([old], MUTANTS) == [old]


def test_explanation_when_its_file_is_not_looked_at_then_is_not_judged() -> None:
    assert outdated([replace(EXPLANATION, file="other.py")], MUTANTS) == []


def test_explanations_when_one_has_no_reason_then_refused() -> None:
    entry = '[[mutant]]\nfile = "a"\nfunction = "f"\nbefore = "b"\nafter = "c"\nreason = " "\n'

    with pytest.raises(ValueError, match="no reason"):
        read_explanations(entry)


def test_explanations_of_this_checkout_when_compared_with_the_code_then_each_line_is_there() -> (
    None
):
    """Only `make mutants` also compares the change itself."""
    for entry in read_explanations(EXPLAINED_FILE.read_text()):
        lines = (CHECKOUT / entry.file).read_text().splitlines()
        assert entry.before in " ".join(line.strip() for line in lines), entry
