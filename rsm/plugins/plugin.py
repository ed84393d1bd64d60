"""Represents a plug-in's class and its settings. Pure; rsm.plugins.loading imports the class.

A plug-in sees only the settings below its own prefix, without the prefix (as KIP-405 does). It must
read each of them in its constructor: a setting that it does not read is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rsm.secret_keys import is_secret

_CLASS = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassName:
    """The name of a class as a configuration has it: `package.module:Class`."""

    module: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ClassName | None:
        """Return the name; None if the text is no name of a class."""
        found = _CLASS.fullmatch(text)
        return None if found is None else cls(module=found["module"], name=found["name"])

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A class, the key that names it, and its settings; Spark sends it to the executors.

    The keys of `settings` have no prefix. `unread` are the settings that the class may ignore,
    because `rlm` or another plug-in reads them. `timeout_ms` limits its start and each of its
    calls.
    """

    class_name: ClassName
    key: str
    prefix: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    unread: frozenset[str] = field(default=frozenset(), repr=False)
    timeout_ms: int = 60_000

    def secrets(self) -> tuple[str, ...]:
        """Return the values that must not appear in a log or an error."""
        return tuple(value for key, value in self.settings.items() if value and is_secret(key))


class PluginSettings(Mapping[str, str]):
    """The settings that a plug-in's constructor gets; `repr` shows only their keys.

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
