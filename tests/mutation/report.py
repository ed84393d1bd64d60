"""The results of the mutants, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.mutation.groups import Group
from tests.mutation.mutants import Mutant
from tests.mutation.processes import Outcome

FLOOR = 0.85
GOAL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A mutant and the result of its tests.

    `remark` names the test that killed it. `reason` explains why no test can.
    """

    mutant: Mutant
    outcome: Outcome
    remark: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of several mutants; one that timed out is killed too."""

    name: str
    mutants: int
    killed: int
    timed_out: int
    explained: int
    broken: int

    @property
    def survived(self) -> int:
        """Mutants that a test should kill."""
        return self.mutants - self.killed - self.explained - self.broken

    @property
    def ratio(self) -> float:
        """Killed ÷ all, explained ones counted as not killed."""
        return self.killed / self.mutants if self.mutants else 1.0


def row(name: str, tried: Iterable[Tried]) -> Row:
    """Count the mutants by their outcome."""
    all_tried = list(tried)
    outcomes = Counter(one.outcome for one in all_tried)
    return Row(
        name=name,
        mutants=len(all_tried),
        killed=outcomes[Outcome.KILLED] + outcomes[Outcome.TIMED_OUT],
        timed_out=outcomes[Outcome.TIMED_OUT],
        explained=sum(bool(one.reason) for one in all_tried),
        broken=outcomes[Outcome.BROKEN],
    )


def group_rows(groups: Sequence[Group], tried: Sequence[Tried]) -> list[Row]:
    """Return a row for each group."""
    return [
        row(group.name, (one for one in tried if one.mutant.file in group.sources))
        for group in groups
    ]


def rows_by(tried: Sequence[Tried], key: Callable[[Mutant], str]) -> list[Row]:
    """Return a row for each value of a key."""
    names = dict.fromkeys(key(one.mutant) for one in tried)
    return [row(name, (one for one in tried if key(one.mutant) == name)) for name in names]


def table(title: str, rows: Sequence[Row], total: Row) -> str:
    """Lay the rows out in columns."""
    heads = ("mutants", "killed", "timed out", "survived", "explained", "broken", "killed/all")
    lines = [f"{title:<40}" + "".join(f"{head:>11}" for head in heads)]
    for one in [*rows, total]:
        values = (
            *(one.mutants, one.killed, one.timed_out),
            *(one.survived, one.explained, one.broken),
        )
        lines.append(
            f"{one.name:<40}" + "".join(f"{value:>11}" for value in values) + f"{one.ratio:>11.3f}"
        )
    return "\n".join(lines)


def survivor_lines(tried: Sequence[Tried]) -> list[str]:
    """Describe each survivor without an explanation: its location and its change."""
    return [
        _described(one.mutant)
        for one in tried
        if one.outcome is Outcome.SURVIVED and not one.reason
    ]


def broken_lines(tried: Sequence[Tried]) -> list[str]:
    """Describe each mutant whose tests ended without a result, and how they ended."""
    return [
        f"{one.remark}: {_described(one.mutant)}" for one in tried if one.outcome is Outcome.BROKEN
    ]


def _described(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.line} {mutant.function}: {mutant.diff}"


def as_json(rows: Sequence[Row], tried: Sequence[Tried], *, seed: int) -> dict[str, object]:
    """Return all results as JSON values."""
    return {
        "seed": seed,
        "goal": GOAL,
        "floor": FLOOR,
        "groups": [
            {
                "group": one.name,
                "mutants": one.mutants,
                "killed": one.killed,
                "timed_out": one.timed_out,
                "survived": one.survived,
                "explained": one.explained,
                "broken": one.broken,
                "ratio": round(one.ratio, 4),
            }
            for one in rows
        ],
        "mutants": [
            {
                "file": one.mutant.file,
                "line": one.mutant.line,
                "function": one.mutant.function,
                "kind": one.mutant.kind,
                "before": one.mutant.before,
                "after": one.mutant.after,
                "outcome": one.outcome.value,
                "test": one.remark,
                "reason": one.reason,
                "seconds": round(one.seconds, 2),
            }
            for one in tried
        ],
    }
