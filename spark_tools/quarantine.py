"""Names the objects in quarantine: orphans that `rlm-repair` does not delete at once. Pure.

    <prefix>/quarantine/<name of the object below the prefix>

A segment's key never begins with `quarantine/`, because it begins with a topic and its id. To
restore an object, copy it to the same name without `quarantine/`.
"""

from __future__ import annotations

from rsm.layout.keys import ObjectKeys, SegmentKey

_DIRECTORY = "quarantine/"


def quarantined_name(keys: ObjectKeys, name: str) -> str:
    """Return an object's name in quarantine."""
    start = f"{keys.prefix}/" if keys.prefix else ""
    return start + _DIRECTORY + name.removeprefix(start)


def original_name(keys: ObjectKeys, name: str) -> str | None:
    """Return the former name of a quarantined object; None if the object is not in quarantine."""
    start = f"{keys.prefix}/" if keys.prefix else ""
    if not name.startswith(start + _DIRECTORY):
        return None
    return start + name.removeprefix(start + _DIRECTORY)


def parse_either(keys: ObjectKeys, name: str) -> SegmentKey | None:
    """Parse the name of a segment's object, in quarantine or not. Returns None for other names."""
    return keys.parse(original_name(keys, name) or name)
