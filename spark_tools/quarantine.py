"""Where orphans are kept that were taken out of the way but not deleted. Pure.

    <prefix>/quarantine/<name of the object below the prefix>

No segment's key begins so, for those begin with a topic and its id. To bring an object back is to
copy it to the name that is behind `quarantine/`.
"""

from __future__ import annotations

from rsm.layout.keys import LedgerKey, ObjectKey, ObjectKeys

_DIRECTORY = "quarantine/"


def quarantined_name(keys: ObjectKeys, name: str) -> str:
    """Where an object goes."""
    start = f"{keys.prefix}/" if keys.prefix else ""
    return start + _DIRECTORY + name.removeprefix(start)


def original_name(keys: ObjectKeys, name: str) -> str | None:
    """Where a quarantined object was; None if it is none of that."""
    start = f"{keys.prefix}/" if keys.prefix else ""
    if not name.startswith(start + _DIRECTORY):
        return None
    return start + name.removeprefix(start + _DIRECTORY)


def parse_either(keys: ObjectKeys, name: str) -> ObjectKey | LedgerKey | None:
    """Whose object it is, in quarantine or not; None for any other name."""
    return keys.parse(original_name(keys, name) or name)
