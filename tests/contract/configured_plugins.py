"""The plug-ins that the contract suites run over, by default those of the example.

Name others in the environment, with their settings. In these, {directory} is a new directory for
each test:

    RLM_PLUGIN_STORAGE=rlm_example.storage:SqliteChunkStorage
    RLM_PLUGIN_STORAGE_SETTINGS='path={directory}/s timeout.ms=1000'
    RLM_PLUGIN_LAYOUT=rlm_example.layout:LabelledLayout
    RLM_PLUGIN_LAYOUT_SETTINGS='label=blue'
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from rsm.layout.segment_layout import SegmentLayout
from rsm.opening import open_layout, open_store
from rsm.plugins.plugin import ClassName, Plugin
from rsm.storage.chunk_storage import ChunkStorage

_EXAMPLE = "tests.plugin_example.rlm_example"


def plugin_storage(directory: Path) -> ChunkStorage:
    """An empty store of the plug-in."""
    plugin = _plugin(
        "RLM_PLUGIN_STORAGE", f"{_EXAMPLE}.storage:SqliteChunkStorage", "path={directory}/sqlite"
    )
    settings = {
        key: value.replace("{directory}", str(directory)) for key, value in plugin.settings.items()
    }
    return open_store(replace(plugin, settings=settings))


def plugin_layout() -> SegmentLayout:
    """The layout of the plug-in."""
    return open_layout(
        _plugin("RLM_PLUGIN_LAYOUT", f"{_EXAMPLE}.layout:LabelledLayout", "label=blue")
    )


def _plugin(variable: str, default: str, default_settings: str) -> Plugin:
    class_name = ClassName.parse(os.environ.get(variable, default))
    assert class_name is not None, f"{variable} is not package.module:Class"
    text = os.environ.get(f"{variable}_SETTINGS", default_settings)
    return Plugin(
        class_name=class_name,
        key=variable,
        prefix="",
        settings=dict(each.split("=", 1) for each in text.split()),
    )
