"""What the collected tests need of this machine, looked up before the first of them runs.

A test that comes late would otherwise end the run by a missing program. What is needed follows from
the modules that the collected tests have imported: those of services say it in `NEEDS`.
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
    """The needs of these modules, as far as they are ours."""
    ours = [module for name, module in modules.items() if name.startswith(("tests.", "bench."))]
    return [module.NEEDS for module in ours if isinstance(getattr(module, "NEEDS", None), Needs)]
