"""Finds the lifecycle rules of a GCS bucket that delete live objects. Pure.

Ignores rules that only noncurrent versions can meet, and rules that change the storage class:
objects of all classes are readable. Source: Cloud Storage's Object Lifecycle Management.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rsm.storage.lifecycle_rules import LifecycleRule

_ONLY_NONCURRENT = ("numNewerVersions", "daysSinceNoncurrentTime", "noncurrentTimeBefore")
_PREFIXES = "matchesPrefix"


def lifecycle_rules(rules: Iterable[Mapping[str, Any]]) -> Iterator[LifecycleRule]:
    """Yield the rules that delete live objects, one for each prefix, numbered as listed."""
    for number, rule in enumerate(rules, start=1):
        condition = rule.get("condition", {})
        is_deletion = rule.get("action", {}).get("type") == "Delete"
        is_noncurrent = condition.get("isLive") is False or any(
            condition.get(each) for each in _ONLY_NONCURRENT
        )
        if not is_deletion or is_noncurrent:
            continue
        shown = ", ".join(f"{key}={value}" for key, value in condition.items() if key != _PREFIXES)
        for prefix in condition.get(_PREFIXES) or ("",):
            effect = f"deletes objects if {shown}" if shown else "deletes objects"
            yield LifecycleRule(name=str(number), effect=effect, prefix=prefix)
