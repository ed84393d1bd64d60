"""Counts the errors of a plug-in, and calls it with a time limit."""

from __future__ import annotations

from rsm.plugins.calls import PluginCalls
from rsm.plugins.plugin import ClassName, Plugin


class Failures:
    def __init__(self) -> None:
        self.counted: list[tuple[str, str]] = []

    def calls(self, *, timeout_ms: int = 30_000) -> PluginCalls:
        plugin = Plugin(
            class_name=ClassName(module="acme", name="Tape"),
            key="rsm.config.storage.backend",
            prefix="rsm.config.storage.",
            settings={"password": "hush"},
            timeout_ms=timeout_ms,
        )
        return PluginCalls(plugin, lambda name, method: self.counted.append((name, method)))
