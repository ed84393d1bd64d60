"""Find the plug-ins of a configuration, and check them before anything is created or started."""

from __future__ import annotations

from collections.abc import Iterator

from rlm.config.load import Config
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rsm.layout.segment_layout import SegmentLayout
from rsm.plugins.loading import check_plugin
from rsm.plugins.plugin import Plugin
from rsm.spi import RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage


def check_plugins(config: Config) -> None:
    """Import each class and check it against its interface; make no object of it.

    Raises InvalidConfigError with the class and its key.
    """
    for plugin, spi in _plugins(config):
        check_plugin(plugin, spi)


def has_plugin(config: Config) -> bool:
    """Return whether any part of the configuration is a plug-in."""
    return next(_plugins(config), None) is not None


def _plugins(config: Config) -> Iterator[tuple[Plugin, type[object]]]:
    segments = config.storage.segments()
    configured = (
        (config.storage.store(), ChunkStorage),
        *((layout, SegmentLayout) for layout in segments.layouts),
        (segments.manager, RemoteStorageManager),
        (config.metadata.plugin(), TopicBasedRemoteLogMetadataManager),
    )
    for found, spi in configured:
        if isinstance(found, Plugin):
            yield found, spi
