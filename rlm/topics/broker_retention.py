"""The broker's own retention of a tiered topic: lifted while it is tiered, restored afterwards.

The broker does not wait for copies: it deletes by its own retention whether or not a segment is
stored. So that retention is lifted to -1, and counts as lifted only when the broker of every
replica says so itself, because any of them may come to lead. Must not know policies' states.
"""

from __future__ import annotations

import logging

from rlm.broker.topics.topic_admin import TopicAdmin, TopicOnReplicas
from rlm.policy.topic.topic_policy import RETENTION_CONFIGS, deletes_nothing
from rlmm.events.values import UNLIMITED, TopicPolicy
from rsm.segment.clock import Clock
from rsm.segment.errors import NotFoundError, RetriableError

logger = logging.getLogger(__name__)

POLL_INTERVAL_MS = 200


class BrokerRetention:
    """Reads and changes `retention.ms` and `retention.bytes` of topics. Thread-safe."""

    def __init__(self, topics: TopicAdmin, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock

    def find(self, topic: str, *, deadline_ms: int) -> TopicOnReplicas:
        """The topic as each replica's broker holds it; waits for one that is not known yet.

        A topic created a moment ago reaches the brokers one after the other. Raises NotFoundError
        or RetriableError if the deadline (monotonic) passes.
        """
        while True:
            try:
                return self._topics.on_replicas(topic)
            except (NotFoundError, RetriableError):
                if self._clock.monotonic_ms() >= deadline_ms:
                    raise
            self._clock.sleep_ms(POLL_INTERVAL_MS)

    def lift(self, policy: TopicPolicy) -> None:
        """Have the broker delete nothing by itself; idempotent. Brokers follow a moment later."""
        self._topics.alter(policy.topic, dict.fromkeys(RETENTION_CONFIGS, str(UNLIMITED)))
        logger.info("broker retention lifted topic=%s", policy.topic)

    def is_lifted(self, policy: TopicPolicy) -> bool:
        """Whether every replica's broker says so now. Raises as TopicAdmin, or NotFoundError."""
        return is_lifted_on(self._topics.on_replicas(policy.topic), policy)

    def await_lifted(self, policy: TopicPolicy, *, deadline_ms: int) -> None:
        """Return when every replica's broker says so.

        Raises RetriableError or NotFoundError if the deadline (monotonic) passes.
        """
        while True:
            if is_lifted_on(self.find(policy.topic, deadline_ms=deadline_ms), policy):
                return
            if self._clock.monotonic_ms() >= deadline_ms:
                raise RetriableError(
                    "a broker still has another retention than -1", topic=policy.topic
                )
            self._clock.sleep_ms(POLL_INTERVAL_MS)

    def restore(self, policy: TopicPolicy) -> None:
        """Give the broker its retention back as it was; an override that was absent is deleted.

        Idempotent.
        """
        originals = {each.name: each.value for each in policy.originals}
        self._topics.alter(policy.topic, originals)
        logger.info("broker retention restored topic=%s originals=%s", policy.topic, originals)


def is_lifted_on(found: TopicOnReplicas, policy: TopicPolicy) -> bool:
    """Whether all replicas' brokers delete nothing of the topic.

    Raises NotFoundError if it is not the topic of the policy but a later one of its name.
    """
    if found.topic.topic_id != policy.topic_id:
        raise NotFoundError("the topic was created again", topic=policy.topic)
    return all(map(deletes_nothing, found.configs.values()))
