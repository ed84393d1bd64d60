"""Mutants that no test can kill, each with its reason, in explained.toml.

An entry names the function, and the changed line before and after, but no line number, because line
numbers change. An entry without a mutant is an error: it could hide a survivor later.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import Mutant

EXPLAINED_FILE = Path(__file__).parent / "explained.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a mutant behaves like the original code."""

    file: str
    function: str
    before: str
    after: str
    reason: str

    def is_about(self, mutant: Mutant) -> bool:
        """Return whether the explanation is for this mutant."""
        return (self.file, self.function, self.before, self.after) == (
            mutant.file,
            mutant.function,
            mutant.before,
            mutant.after,
        )


def read_explanations(text: str) -> list[Explanation]:
    """Read the entries of the file; raises ValueError for an entry without a reason."""
    entries = [Explanation(**entry) for entry in tomllib.loads(text).get("mutant", [])]
    for entry in entries:
        if not entry.reason.strip():
            raise ValueError(f"a mutant of {entry.function} in {entry.file} has no reason")
    return entries


def outdated(
    explanations: Iterable[Explanation], mutants: Mapping[str, Sequence[Mutant]]
) -> list[Explanation]:
    """Return the entries of these files that have no mutant."""
    return [
        entry
        for entry in explanations
        if entry.file in mutants and not any(entry.is_about(one) for one in mutants[entry.file])
    ]
