"""Finds the lifecycle rules of an S3 bucket that affect current objects. Pure.

Ignores rules for objects with tags, because rlm sets no tags. Also ignores noncurrent versions and
incomplete uploads, because no record names them. Source: S3's GetBucketLifecycleConfiguration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rsm.storage.lifecycle_rules import LifecycleRule

_ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})


def lifecycle_rules(configuration: Mapping[str, Any]) -> Iterator[LifecycleRule]:
    """Yield the rules that delete objects or move them to an archive, where they are unreadable."""
    for rule in configuration.get("Rules", ()):
        chosen = rule.get("Filter", {})
        chosen = chosen.get("And", chosen)
        if rule.get("Status") != "Enabled" or "Tag" in chosen or "Tags" in chosen:
            continue
        name, prefix = rule.get("ID", ""), chosen.get("Prefix", rule.get("Prefix", ""))
        expiration = rule.get("Expiration", {})
        if "Days" in expiration or "Date" in expiration:
            effect = f"deletes objects {_when(expiration)}"
            yield LifecycleRule(name=name, effect=effect, prefix=prefix)
        yield from _archiving(name, prefix, rule.get("Transitions", ()))


def _archiving(
    name: str, prefix: str, transitions: Sequence[Mapping[str, Any]]
) -> Iterator[LifecycleRule]:
    for each in transitions:
        storage_class = each.get("StorageClass", "")
        if storage_class in _ARCHIVES:
            effect = f"moves objects to {storage_class}, where they cannot be read, {_when(each)}"
            yield LifecycleRule(name=name, effect=effect, prefix=prefix)


def _when(action: Mapping[str, Any]) -> str:
    if "Days" in action:
        return f"{action['Days']} days after they were written"
    return f"from {action.get('Date', 'a date')}"
