"""The plug-ins that the contract suites run over, by default those of the example.

Name others in the environment, with their settings. In settings, {directory} is a new directory for
each test:

    RLM_PLUGIN_STORAGE=rlm_example.storage:SqliteChunkStorage
    RLM_PLUGIN_STORAGE_SETTINGS='path={directory}/s timeout.ms=1000'
    RLM_PLUGIN_LAYOUT=rlm_example.layout:LabeledLayout
    RLM_PLUGIN_LAYOUT_SETTINGS='label=blue'
    RLM_PLUGIN_MANAGER=rlm_example.manager:ArchiveStorageManager
    RLM_PLUGIN_MANAGER_SETTINGS='archive.root={directory}'
    RLM_PLUGIN_METADATA=rlm_example.metadata:LoggingMetadataManager
    RLM_PLUGIN_METADATA_SETTINGS='logger=acme.audit'
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.event_topic import EventTopic
from rsm.layout.segment_layout import SegmentLayout
from rsm.opening import open_layout, open_store
from rsm.plugins.calls import PluginCalls, ignore_failure
from rsm.plugins.loading import start_plugin
from rsm.plugins.manager import PluginStorageManager
from rsm.plugins.plugin import ClassName, Plugin
from rsm.plugins.subclass import start_subclass
from rsm.segment.clock import Clock
from rsm.spi import RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage
from rsm.transfer import ReadBack

_EXAMPLE = "tests.plugin_example.rlm_example"


def plugin_storage(directory: Path) -> ChunkStorage:
    """Return an empty store of the plug-in."""
    plugin = _plugin(
        "RLM_PLUGIN_STORAGE", f"{_EXAMPLE}.storage:SqliteChunkStorage", "path={directory}/sqlite"
    )
    return open_store(_in_directory(plugin, directory))


def plugin_layout() -> SegmentLayout:
    """Return the layout of the plug-in."""
    return open_layout(
        _plugin("RLM_PLUGIN_LAYOUT", f"{_EXAMPLE}.layout:LabeledLayout", "label=blue")
    )


def plugin_manager(directory: Path) -> RemoteStorageManager:
    """Return the plug-in's remote storage manager with an empty store; copies are read back."""
    plugin = _plugin(
        "RLM_PLUGIN_MANAGER",
        f"{_EXAMPLE}.manager:ArchiveStorageManager",
        "archive.root={directory}",
    )
    inner = start_plugin(
        _in_directory(plugin, directory),
        RemoteStorageManager,  # type: ignore[type-abstract]  # loading checks
    )
    return PluginStorageManager(
        inner, PluginCalls(plugin, ignore_failure), ReadBack(piece_bytes=150)
    )


def plugin_metadata(
    topic: EventTopic, cache: MetadataCache, clock: Clock, settings: ManagerSettings
) -> TopicBasedRemoteLogMetadataManager:
    """Return the plug-in's metadata manager, which does not follow the topic yet."""
    plugin = _plugin(
        "RLM_PLUGIN_METADATA", f"{_EXAMPLE}.metadata:LoggingMetadataManager", "logger=acme.audit"
    )
    base = TopicBasedRemoteLogMetadataManager
    return start_subclass(plugin, base, ignore_failure, topic, cache, clock, settings)


def _in_directory(plugin: Plugin, directory: Path) -> Plugin:
    settings = {
        key: value.replace("{directory}", str(directory)) for key, value in plugin.settings.items()
    }
    return replace(plugin, settings=settings)


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
