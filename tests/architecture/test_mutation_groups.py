"""The decision modules that are measured with mutants (docs/mutation-testing.md)."""

from __future__ import annotations

from collections import Counter

from tests.architecture.tree import CHECKOUT, python_files
from tests.mutation.groups import GROUPS

# Modules of rlm/policy and rlm/status that no group measures, each with the reason.
_SHOWN = "makes what commands and metrics show; nothing is deleted or trimmed by it"
_OF_SETTINGS = "checks or derives settings; a wrong one is refused or shown, and deletes nothing"
UNMEASURED = {
    "rlm/status/attention.py": _SHOWN,
    "rlm/status/block_explanations.py": _SHOWN,
    "rlm/status/cluster_totals.py": _SHOWN,
    "rlm/status/failures.py": _SHOWN,
    "rlm/status/document.py": _SHOWN,
    "rlm/status/document_parts.py": _SHOWN,
    "rlm/status/json_object.py": _SHOWN,
    "rlm/status/problem.py": _SHOWN,
    "rlm/status/report.py": _SHOWN,
    "rlm/policy/request/canary.py": "a test topic of its own; no other data depends on it",
    "rlm/status/cluster_processes.py": _SHOWN,
    "rlm/status/cluster_status.py": _SHOWN,
    "rlm/policy/resources/copy_concurrency.py": "a pace: any number of copies stores the same",
    "rlm/policy/resources/disk_forecast.py": _SHOWN,
    "rlm/status/explanation.py": _SHOWN,
    "rlm/policy/peers/gateway_address.py": _OF_SETTINGS,
    "rlm/policy/blocked.py": "names reasons; the modules that ask it are measured",
    "rlm/policy/peers/other_hosts.py": _OF_SETTINGS,
    "rlm/policy/topic/policy_values.py": _OF_SETTINGS,
    "rlm/status/retention_preview.py": _SHOWN,
    "rlm/policy/topic/topic_policy.py": _OF_SETTINGS,
    "rlm/policy/view.py": "the values that others decide by; the modules that do are measured",
}


def test_policies_when_a_module_is_added_then_it_is_measured_or_has_a_reason() -> None:
    files = python_files("rlm/policy", "rlm/status")
    modules = {file.name for file in files if file.path.name != "__init__.py"}
    measured = {source for group in GROUPS for source in group.sources}

    assert modules - measured - UNMEASURED.keys() == set()
    assert UNMEASURED.keys() - modules == set()
    assert UNMEASURED.keys() & measured == set()


def test_groups_when_they_name_files_then_each_is_there_and_in_one_group() -> None:
    sources = Counter(source for group in GROUPS for source in group.sources)
    paths = {*sources, *(test for group in GROUPS for test in group.tests)}

    assert [path for path in sorted(paths) if not (CHECKOUT / path).exists()] == []
    assert [source for source, count in sources.items() if count > 1] == []
