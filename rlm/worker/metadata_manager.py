"""Opens the remote log metadata manager that the configuration names."""

from __future__ import annotations

from rlm.config.sections import MetadataConfig
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.event_topic import EventTopic
from rsm.plugins.calls import PluginFailed, ignore_failure
from rsm.plugins.subclass import start_subclass
from rsm.segment.clock import Clock


def open_metadata_manager(
    config: MetadataConfig,
    topic: EventTopic,
    cache: MetadataCache,
    clock: Clock,
    settings: ManagerSettings,
    plugin_failed: PluginFailed = ignore_failure,
) -> TopicBasedRemoteLogMetadataManager:
    """Open the manager of `topic` and `cache`; do not follow the topic yet.

    The manager's `close` also closes `topic` and `cache`. Raises InvalidConfigError if a plug-in
    cannot be started.
    """
    plugin = config.plugin()
    built_in = TopicBasedRemoteLogMetadataManager
    if plugin is None:
        return built_in(topic, cache, clock, settings)
    return start_subclass(plugin, built_in, plugin_failed, topic, cache, clock, settings)
