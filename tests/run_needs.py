"""Checks before the first test that this machine has what the collected tests need.

Otherwise a late test would end the run because of a missing program. Modules of services list
their needs in `NEEDS`; the check looks at those that the collected tests import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType

import pytest

from tests.services.service import Needs, require

SERVICE_LEVELS = frozenset({"integration", "e2e", "hosts"})


class RunNeeds:
    """A pytest plugin that ends a run whose machine lacks something. One object per run."""

    def __init__(self) -> None:
        self._is_checked = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Raise ServiceMissingError before the first test if any of the run's needs services."""
        if self._is_checked:
            return
        self._is_checked = True
        levels = {mark.name for each in item.session.items for mark in each.iter_markers()}
        if levels & SERVICE_LEVELS:
            require(needs_of(sys.modules))


def needs_of(modules: Mapping[str, ModuleType]) -> Iterable[Needs]:
    """Return the `NEEDS` of the modules among these that belong to this checkout."""
    ours = [module for name, module in modules.items() if name.startswith(("tests.", "bench."))]
    return [module.NEEDS for module in ours if isinstance(getattr(module, "NEEDS", None), Needs)]
