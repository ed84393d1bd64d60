"""Finds the retention that a topic had before it was tiered, if its policy was lost.

Tiering sets the broker's retention to -1. Without the policy, -1 looks like the topic's own
retention. Only the originals in the store show the difference (rlm.topics.originals_mirror).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.facts.topic_configs import RETENTION_BYTES, RETENTION_MS, ConfigValue, TopicConfigs
from rlm.policy.topic.topic_policy import are_all_lifted, retention_overrides
from rsm.layout.originals import OriginalSettings
from rsm.segment.errors import RetriableError, TieredStorageError

Recall = Callable[[str, UUID], OriginalSettings | None]
"""Returns a topic's originals from the store; None if the store has none."""


class SettingsBeforeTiering:
    """Finds the settings that topics without a policy had before they were tiered.

    Use one instance for one pass over topics: after the first error of the store, it repeats this
    error and sends the store no more requests. Not thread-safe.
    """

    def __init__(self, recall: Recall, topics: TopicAdmin, *, node_id: int) -> None:
        """Read the default retention from broker `node_id`, which has reported the settings."""
        self._recall = recall
        self._topics = topics
        self._node_id = node_id
        self._failure: RetriableError | None = None
        self._defaults: Mapping[str, int] | None = None

    def of(self, configs: TopicConfigs, topic_id: UUID) -> TopicConfigs:
        """Return `configs`; with the originals if the store shows that tiering set the retention.

        An original without an override becomes the broker's default. Raises RetriableError if the
        originals or the default cannot be read.
        """
        if not are_all_lifted(retention_overrides(configs)):
            return configs
        try:
            originals = self._recalled(configs.topic, topic_id)
            if originals is None:
                return configs
            defaults = self._broker_defaults()
        except TieredStorageError as error:
            raise RetriableError(
                "cannot find the topic's own retention: tiering may have set the present -1",
                topic=configs.topic,
                reason=error,
                advice="Correct the cause that `reason` names, then try again",
            ) from error
        retention = {
            name: _restored(originals.values.get(name), default)
            for name, default in defaults.items()
        }
        return TopicConfigs(topic=configs.topic, entries={**configs.entries, **retention})

    def _recalled(self, topic: str, topic_id: UUID) -> OriginalSettings | None:
        if self._failure is not None:
            raise self._failure
        try:
            return self._recall(topic, topic_id)
        except RetriableError as error:
            self._failure = error
            raise

    def _broker_defaults(self) -> Mapping[str, int]:
        if self._defaults is None:
            found = self._topics.default_retention(self._node_id)
            self._defaults = {
                RETENTION_MS: found.retention_ms,
                RETENTION_BYTES: found.retention_bytes,
            }
        return self._defaults


def _restored(original: str | None, default: int) -> ConfigValue:
    value = str(default) if original is None else original
    return ConfigValue(value=value, is_override=original is not None)
