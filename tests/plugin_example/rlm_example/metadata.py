"""A remote log metadata manager that logs each event that it publishes, accepted or not.

remote.log.metadata.manager.class.name=rlm_example.metadata:LoggingMetadataManager
rlmm.config.manager.logger=acme.audit
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.event import Event
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.spi import PublishResult
from rlmm.topic.event_topic import EventTopic
from rsm.segment.clock import Clock


class LoggingMetadataManager(TopicBasedRemoteLogMetadataManager):
    """Logs each published event.

    Setting: `logger`, the name of the logger; `rlm_example` by default.
    """

    def __init__(
        self,
        topic: EventTopic,
        cache: MetadataCache,
        clock: Clock,
        settings: ManagerSettings,
        own: Mapping[str, str],
    ) -> None:
        super().__init__(topic, cache, clock, settings)
        self._log = logging.getLogger(own.get("logger", "rlm_example"))

    def publish(self, event: Event) -> PublishResult:
        result = super().publish(event)
        self._log.info("published", extra={"event": type(event).__name__})
        return result
