"""Represents a plug-in's class and its settings. Pure; rsm.plugins.loading imports the class.

A plug-in sees only the settings below its own prefix, without the prefix (KIP-405). Its constructor
must read each of them: `rlm` rejects an unread setting as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rsm.secret_keys import is_secret

_CLASS = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassName:
    """Represents the name of a class, as configurations spell it: `package.module:Class`."""

    module: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ClassName | None:
        """Parse the name of a class. Returns None if `text` is not such a name."""
        found = _CLASS.fullmatch(text)
        return None if found is None else cls(module=found["module"], name=found["name"])

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Represents a plug-in's class, the key that names the class, and its settings.

    Spark sends this object to the executors. The keys of `settings` have no prefix. The class may
    ignore the settings in `unread`, because `rlm` or another plug-in reads them. `timeout_ms`
    limits the plug-in's start and each call of `PluginCalls.run`.
    """

    class_name: ClassName
    key: str
    prefix: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    unread: frozenset[str] = field(default=frozenset(), repr=False)
    timeout_ms: int = 60_000

    def secrets(self) -> tuple[str, ...]:
        """Return the values of secret settings: they must not appear in a log or an error."""
        return tuple(value for key, value in self.settings.items() if value and is_secret(key))


class PluginSettings(Mapping[str, str]):
    """Represents the settings that a plug-in's constructor gets; `repr` shows only their keys.

    Records which settings the constructor reads.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self._read.add(key)
        return self._settings[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def __repr__(self) -> str:
        return f"PluginSettings({', '.join(sorted(self._settings))})"

    def never_read(self) -> frozenset[str]:
        """Return the keys whose values the constructor did not read."""
        return frozenset(self._settings) - self._read
