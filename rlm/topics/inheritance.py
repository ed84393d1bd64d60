"""Applies policy levels to topics, in the manager whose broker leads the first partition.

    no policy, and a pattern matches  → ENABLING with the originals; the manager completes it in its
                                        next cycles (rlm.topics.retention_guard)
    ACTIVE, with inherited settings   → these settings with the levels' current values
    every other state                 → nothing: `rlm topic disable` wins over patterns

The manager reads only the topic's own policy when it decides. So levels affect data only when this
module, or a command for the topic, writes the policy. This module logs each change with the new
values.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rlm.broker.cluster import TopicView
from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.tasks.context.log_once import LogOnce
from rlm.topics.level_effects import LevelEffects, TopicEffect
from rlm.topics.policy_writer import PolicyWriter
from rlmm.events.policy import PolicySetting, TopicPolicy, topic_policies
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import FencedError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


class PolicyInheritance:
    """Applies the levels to the topics whose first partition one broker leads. Not thread-safe."""

    def __init__(
        self,
        effects: LevelEffects,
        policies: PolicyWriter,
        *,
        topics: TopicAdmin,
        metadata: RemoteLogMetadataManager,
        node_id: int,
    ) -> None:
        self._effects = effects
        self._policies = policies
        self._topics = topics
        self._metadata = metadata
        self._node_id = node_id
        self._log_once = LogOnce()

    def step(self) -> None:
        """Apply the levels once. Raises RetriableError if the cluster does not answer.

        Raises NotFoundError if the cluster does not know this manager's broker.
        """
        levels = self._policies.levels()
        policies = {each.topic_id: each for each in topic_policies(self._metadata)}
        led = self._led(levels, policies.values())
        effects = self._effects.of(led, levels, policies, node_id=self._node_id)
        self._log_once.retain({each.topic_id for each in effects})
        for effect in effects:
            self._apply(effect, levels)

    def _led(
        self, levels: Iterable[PolicyLevel], policies: Iterable[TopicPolicy]
    ) -> Iterator[TopicView]:
        """Yield this manager's topics. If there are no patterns, yield only those that inherit."""
        names: list[str] | None = None
        if all(each.pattern == DEFAULT_LEVEL for each in levels):
            names = [each.topic for each in policies if each.inherited]
            if not names:
                return
        view = self._topics.view(names)
        for topic in view.topics.values():
            if topic.partitions and topic.partitions[0].leader_id == self._node_id:
                yield topic

    def _apply(self, effect: TopicEffect, levels: Sequence[PolicyLevel]) -> None:
        if effect.obstacle:
            if self._log_once.changed(effect.topic_id, effect.obstacle):
                _log.info(
                    LogLine(
                        "topic does not follow the policy levels",
                        topic=effect.topic,
                        pattern=effect.pattern,
                        reason=effect.obstacle,
                    )
                )
            return
        self._log_once.clear(effect.topic_id)
        if effect.after is None or not effect.is_change:
            return
        # If another process has changed the policy or the levels, the next cycle compares again.
        if self._policies.current(effect.topic_id) != effect.before:
            return
        if self._policies.levels() != levels:
            return
        changed = changed_settings(effect.before, effect.after)
        try:
            self._policies.write(effect.after)
        except FencedError as error:
            _log.info(
                LogLine(
                    "cannot apply policy levels: the topic's policy has changed meanwhile",
                    topic=effect.topic,
                    error=error,
                )
            )
            return
        _log.info(
            LogLine(
                "started to tier a topic that matches a pattern"
                if effect.before is None
                else "applied policy levels",
                topic=effect.topic,
                pattern=effect.pattern,
                **{setting.field: values[1] for setting, values in changed.items()},
            )
        )


def changed_settings(
    before: TopicPolicy | None, after: TopicPolicy
) -> Mapping[PolicySetting, tuple[object, object]]:
    """Return each setting that differs, with both values; every setting for a new policy."""
    pairs = {
        each: (getattr(before, each.field, None), getattr(after, each.field))
        for each in PolicySetting
    }
    return {
        setting: values
        for setting, values in pairs.items()
        if before is None or values[0] != values[1]
    }
