"""Restores the retention of topics whose policies were lost, from the originals in the store.

Skips topics whose retention has changed since tiering set it to -1: that is a user's setting.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.policy.topic.topic_policy import are_all_lifted, retention_overrides
from rlm.topics.originals_mirror import StoredOriginals, drop_ended
from rlmm.events.policy import topic_policies
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.originals import OriginalSettings
from rsm.segment.errors import NotFoundError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


class OriginalsRestore:
    """Finds topics with lost policies and restores their retention.

    Thread-safe if the store is.
    """

    def __init__(
        self, stored: StoredOriginals, *, topics: TopicAdmin, metadata: RemoteLogMetadataManager
    ) -> None:
        self._stored = stored
        self._topics = topics
        self._metadata = metadata

    def lost(self) -> tuple[OriginalSettings, ...]:
        """Return the stored originals of existing topics with no policy and with a retention of -1.

        The result is sorted by topic name. Raises the errors of the store and of TopicAdmin.
        """
        known = {policy.topic_id for policy in topic_policies(self._metadata)}
        kept = [each for each in self._stored.all().values() if each.topic_id not in known]
        return tuple(sorted(self._lifted(kept), key=lambda each: each.topic))

    def restore(self, settings: OriginalSettings) -> None:
        """Restore the originals, and delete their copy in the store.

        Deletes overrides whose original is None. Idempotent. Raises the errors of TopicAdmin. If
        the copy cannot be deleted, logs a warning: a -1 that the user sets later would look as if
        tiering had set it.
        """
        self._topics.alter(settings.topic, settings.values)
        drop_ended(self._stored, settings.topic, settings.topic_id)
        _log.info(
            LogLine(
                "restored the broker's retention from the store",
                topic=settings.topic,
                originals=dict(settings.values),
            )
        )

    def _lifted(self, kept: Iterable[OriginalSettings]) -> Iterable[OriginalSettings]:
        for settings in kept:
            try:
                found = self._topics.on_replicas(settings.topic)
            except NotFoundError:
                continue
            overrides = retention_overrides(found.leader_configs)
            if found.topic.topic_id == settings.topic_id and are_all_lifted(overrides):
                yield settings
