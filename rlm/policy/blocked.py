"""Explains why a partition's copy, trim or expiry is blocked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlm.policy.view import PartitionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Represents the rule that blocks a copy, a trim or an expiry, and the values it compared."""

    reason: str
    values: Mapping[str, int | str] = field(default_factory=dict)


def blocked_by_log(view: PartitionView) -> Blocked | None:
    """Return why the state of the topic or its log blocks copies and trims; None if it does not."""
    if view.untierable is not None:
        return Blocked(reason="unsupported_topic", values={"rule": view.untierable})
    if view.conflict_offset is not None:
        return Blocked(reason="lineage_conflict", values={"offset": view.conflict_offset})
    if view.epochs_known_from_offset is not None:
        values = {"epochs_known_from": view.epochs_known_from_offset}
        return Blocked(reason="older_than_epochs", values=values)
    return None
