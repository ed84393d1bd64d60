"""Disables the broker's own retention of a topic while it is tiered, and restores it afterwards.

The broker does not wait for copies: its retention deletes segments even if they are not stored. So
this module sets that retention to -1. The retention counts as lifted only when the broker of every
replica reports -1, because any of them may become the leader. This module must not know the states
of policies.
"""

from __future__ import annotations

import logging

from rlm.broker.topics.topic_admin import TopicAdmin, TopicOnReplicas
from rlm.facts.topic_configs import TopicConfigs
from rlm.policy.topic.topic_policy import RETENTION_CONFIGS, deletes_nothing
from rlm.topics.lost_policy import Recall, SettingsBeforeTiering
from rlmm.events.policy import UNLIMITED, TopicPolicy
from rsm.segment.clock import Clock
from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

POLL_INTERVAL_MS = 200


class BrokerRetention:
    """Reads and changes `retention.ms` and `retention.bytes` of topics. Thread-safe."""

    def __init__(self, topics: TopicAdmin, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock

    def find(self, topic: str, *, deadline_ms: int) -> TopicOnReplicas:
        """Return the topic as each replica's broker knows it; wait until all of them know it.

        Brokers learn of a new topic one after the other. Raises NotFoundError or RetriableError if
        the deadline (monotonic) passes.
        """
        while True:
            try:
                return self._topics.on_replicas(topic)
            except (NotFoundError, RetriableError):
                if self._clock.monotonic_ms() >= deadline_ms:
                    raise
            self._clock.sleep_ms(POLL_INTERVAL_MS)

    def configs_before(self, found: TopicOnReplicas, recall: Recall) -> TopicConfigs:
        """Return the settings that a topic without a policy had before it was tiered."""
        before = SettingsBeforeTiering(recall, self._topics, node_id=found.leader_id)
        return before.of(found.leader_configs, found.topic.topic_id)

    def lift(self, policy: TopicPolicy) -> None:
        """Set the broker's retention to -1; idempotent. Brokers apply the change a moment later."""
        self._topics.alter(policy.topic, dict.fromkeys(RETENTION_CONFIGS, str(UNLIMITED)))
        _log.info(LogLine("set the broker's retention to -1", topic=policy.topic))

    def is_lifted(self, policy: TopicPolicy) -> bool:
        """Return whether all replicas' brokers report -1.

        Raises TopicAdmin's errors, and NotFoundError if the topic was deleted and created again.
        """
        return is_lifted_on(self._topics.on_replicas(policy.topic), policy)

    def await_lifted(self, policy: TopicPolicy, *, deadline_ms: int) -> None:
        """Wait until every replica's broker reports -1.

        Raises RetriableError or NotFoundError if the deadline (monotonic) passes.
        """
        while True:
            if is_lifted_on(self.find(policy.topic, deadline_ms=deadline_ms), policy):
                return
            if self._clock.monotonic_ms() >= deadline_ms:
                raise RetriableError(
                    "cannot set retention to -1 on all replicas: a broker reports another value",
                    topic=policy.topic,
                    advice="Run the command again",
                )
            self._clock.sleep_ms(POLL_INTERVAL_MS)

    def restore(self, policy: TopicPolicy) -> None:
        """Restore the originals; delete overrides that the topic did not have. Idempotent."""
        originals = {each.name: each.value for each in policy.originals}
        self._topics.alter(policy.topic, originals)
        what = "restored the broker's retention"
        _log.info(LogLine(what, topic=policy.topic, originals=originals))


def is_lifted_on(found: TopicOnReplicas, policy: TopicPolicy) -> bool:
    """Return whether every replica's broker reports a retention of -1 for the topic.

    Raises NotFoundError if the topic was deleted and created again with the same name.
    """
    if found.topic.topic_id != policy.topic_id:
        raise NotFoundError(
            "cannot change retention: the topic was deleted and created again",
            topic=policy.topic,
            advice="Run the command again",
        )
    return all(map(deletes_nothing, found.configs.values()))
