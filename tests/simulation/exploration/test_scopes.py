"""Every interleaving of a few managers and events is correct; without a guard, one is not."""

from __future__ import annotations

import re

import pytest

from tests.architecture.tree import CHECKOUT
from tests.simulation.exploration.__main__ import report
from tests.simulation.exploration.explorer import Explorer
from tests.simulation.exploration.scopes import SCOPES, Scope
from tests.simulation.processes import SimulatedProcess

DOCUMENTED = re.compile(r"^\| `([a-z-]+)`(?: \(large\))? \| ([^|]+) \|", re.MULTILINE)
SMALL = [scope for scope in SCOPES if not scope.is_large]
GUARDED = [(scope, guard) for scope in SCOPES for guard in scope.guards]


def test_scopes_when_documented_then_each_is_with_what_it_explores() -> None:
    page = (CHECKOUT / "docs" / "testing.md").read_text()

    assert dict(DOCUMENTED.findall(page)) == {scope.name: scope.explores for scope in SCOPES}


@pytest.mark.parametrize("scope", SMALL, ids=lambda scope: scope.name)
def test_scope_when_every_interleaving_is_explored_then_all_invariants_hold(scope: Scope) -> None:
    """Scenarios 5-14, 72, 103, 105, 106; R1, R2, R5, R7, R11, R13."""
    found = Explorer(scope.stage, max_states=scope.max_states).explore()

    assert found.broken is None, report(scope, found.broken)
    assert found.interleavings >= found.endings > 1


@pytest.mark.parametrize(
    ("scope", "guard"), GUARDED, ids=[f"{scope.name}-{guard.__name__}" for scope, guard in GUARDED]
)
def test_scope_when_a_guard_is_missing_then_an_interleaving_breaks_an_invariant(
    scope: Scope, guard: type[SimulatedProcess]
) -> None:
    """R1, R2, R5, R7: a scope that cannot fail proves nothing."""
    found = Explorer(lambda: scope.stage(guard), max_states=scope.max_states).explore()

    assert found.broken is not None
