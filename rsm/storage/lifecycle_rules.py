"""Represents lifecycle rules: a bucket's own rules that delete or archive objects. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRule:
    """Represents one rule: its name, its effect on objects, and the prefix of their keys."""

    name: str
    effect: str
    prefix: str = ""

    def can_affect(self, key_prefix: str) -> bool:
        """Return whether the rule can affect objects whose keys begin with `key_prefix`."""
        return self.prefix.startswith(key_prefix) or key_prefix.startswith(self.prefix)

    def __str__(self) -> str:
        where = f"prefix {self.prefix!r}" if self.prefix else "the whole bucket"
        return f"rule {self.name!r} for {where}: {self.effect}"
