"""Finds the retention that a topic had before it was tiered, if its policy was lost.

Tiering sets the broker's retention to -1. Without the policy, that looks like a retention that the
topic has of its own. Only the copy in the store shows the difference (rlm.topics.originals_mirror).
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.facts.topic_configs import RETENTION_BYTES, RETENTION_MS, ConfigValue, TopicConfigs
from rlm.policy.topic.topic_policy import are_all_lifted, retention_overrides
from rsm.layout.originals import OriginalSettings

Recall = Callable[[str, UUID], OriginalSettings | None]
"""Returns the originals of a topic that the store has; None if there are none."""


def configs_before_tiering(
    configs: TopicConfigs,
    topic_id: UUID,
    recall: Recall | None,
    topics: TopicAdmin,
    *,
    node_id: int,
) -> TopicConfigs:
    """Return the settings of a topic without a policy, with the retention that is its own.

    These are `configs` of broker `node_id`, unless `recall` shows that tiering set their retention.
    A limit that was absent is the broker's default. Raises as `recall` and TopicAdmin do.
    """
    if recall is None or not are_all_lifted(retention_overrides(configs)):
        return configs
    originals = recall(configs.topic, topic_id)
    if originals is None:
        return configs
    default = topics.default_retention(node_id)
    defaults = {RETENTION_MS: default.retention_ms, RETENTION_BYTES: default.retention_bytes}
    retention = {
        name: _restored(originals.values.get(name), default) for name, default in defaults.items()
    }
    return TopicConfigs(topic=configs.topic, entries={**configs.entries, **retention})


def _restored(original: str | None, default: int) -> ConfigValue:
    value = str(default) if original is None else original
    return ConfigValue(value=value, is_override=original is not None)
