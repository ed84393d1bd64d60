"""Which modules that decide are measured with mutants (docs/mutation-testing.md)."""

from __future__ import annotations

from collections import Counter

from tests.architecture.tree import CHECKOUT, python_files
from tests.mutation.groups import GROUPS

# Modules of rlm/policy that no group measures, each with the reason.
_SHOWN = "makes what commands and metrics show; nothing is deleted or trimmed by it"
_OF_SETTINGS = "checks or derives settings; a wrong one is refused or shown, and deletes nothing"
UNMEASURED = {
    "rlm/policy/__init__.py": "empty",
    "rlm/policy/canary.py": "a test topic of its own; no other data depends on it",
    "rlm/policy/cluster_processes.py": _SHOWN,
    "rlm/policy/cluster_status.py": _SHOWN,
    "rlm/policy/copy_concurrency.py": "a pace: any number of copies at once stores the same",
    "rlm/policy/disk_forecast.py": _SHOWN,
    "rlm/policy/explanation.py": _SHOWN,
    "rlm/policy/future_timestamps.py": _SHOWN,
    "rlm/policy/gateway_address.py": _OF_SETTINGS,
    "rlm/policy/held.py": "names reasons; the modules that ask it are measured",
    "rlm/policy/other_hosts.py": _OF_SETTINGS,
    "rlm/policy/policy_values.py": _OF_SETTINGS,
    "rlm/policy/retention_preview.py": _SHOWN,
    "rlm/policy/topic_policy.py": _OF_SETTINGS,
    "rlm/policy/view.py": "the values that others decide by; the modules that do are measured",
}


def test_policies_when_a_module_is_added_then_it_is_measured_or_has_a_reason() -> None:
    modules = {file.name for file in python_files("rlm") if file.name.startswith("rlm/policy/")}
    measured = {source for group in GROUPS for source in group.sources}

    assert modules - measured - UNMEASURED.keys() == set()
    assert UNMEASURED.keys() - modules == set()
    assert UNMEASURED.keys() & measured == set()


def test_groups_when_they_name_files_then_each_is_there_and_in_one_group() -> None:
    sources = Counter(source for group in GROUPS for source in group.sources)
    paths = {*sources, *(test for group in GROUPS for test in group.tests)}

    assert [path for path in sorted(paths) if not (CHECKOUT / path).exists()] == []
    assert [source for source, count in sources.items() if count > 1] == []
