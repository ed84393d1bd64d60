"""Finds the plug-ins of a configuration, and checks them before anything is created or started.

This module imports an interface only if the configuration has a plug-in that implements it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from rlm.config.load import Config
from rsm.plugins.loading import check_plugin
from rsm.plugins.plugin import Plugin

_STORE = "rsm.storage.chunk_storage:ChunkStorage"
_LAYOUT = "rsm.layout.segment_layout:SegmentLayout"
_STORAGE_MANAGER = "rsm.spi:RemoteStorageManager"
_METADATA_MANAGER = "rlmm.manager:TopicBasedRemoteLogMetadataManager"


def check_plugins(config: Config) -> None:
    """Import each plug-in's class and check it against its interface; create no object.

    Raises InvalidConfigError with the class and its key.
    """
    for plugin, interface in _plugins(config):
        check_plugin(plugin, _class(interface))


def has_plugin(config: Config) -> bool:
    """Return whether any part of the configuration is a plug-in."""
    return next(_plugins(config), None) is not None


def _plugins(config: Config) -> Iterator[tuple[Plugin, str]]:
    segments = config.storage.segments()
    configured = (
        (config.storage.store(), _STORE),
        *((layout, _LAYOUT) for layout in segments.layouts),
        (segments.manager, _STORAGE_MANAGER),
        (config.metadata.plugin(), _METADATA_MANAGER),
    )
    for found, interface in configured:
        if isinstance(found, Plugin):
            yield found, interface


def _class(interface: str) -> type[object]:
    module, _, name = interface.partition(":")
    found: type[object] = getattr(importlib.import_module(module), name)
    return found
