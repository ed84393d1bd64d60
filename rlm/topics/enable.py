"""Enables a topic's tiering, and changes its policy, in a fixed order of effects.

    ENABLING with the originals accepted → the broker's retention at -1
    → read back from the broker of every replica → ACTIVE

If a run stops in between, the topic stays ENABLING: no manager trims or copies it. The same command
completes the change, and so does a manager whose broker leads one of its partitions. The originals
are recorded before the broker's retention changes, so they cannot be lost. If the topic is ACTIVE
and its retention is -1, one write replaces the policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlm.broker.topics.topic_admin import TopicOnReplicas
from rlm.facts.topic_configs import TopicConfigs
from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import PolicyFlags, check_tierable, enabling_policy
from rlm.topics.broker_retention import BrokerRetention, is_lifted_on
from rlm.topics.lost_policy import Recall
from rlm.topics.policy_writer import PolicyWriter
from rlmm.events.policy import PolicyState, TopicPolicy
from rsm.segment.clock import Clock

Progress = Callable[[str], None]


class Activation:
    """Completes ENABLING policies, and corrects the retention of ACTIVE topics. Thread-safe.

    Acts only if the policy is current: a restored retention must not become -1 again.
    """

    def __init__(self, policies: PolicyWriter, retention: BrokerRetention) -> None:
        self._policies = policies
        self._retention = retention

    def lift(self, policy: TopicPolicy) -> bool:
        """Set the broker's retention to -1; return False if the policy is no longer current."""
        if self._policies.current(policy.topic_id) != policy:
            return False
        self._retention.lift(policy)
        return True

    def carry_on(self, enabling: TopicPolicy) -> TopicPolicy | None:
        """Try once to complete an ENABLING policy; return None if a broker is not ready.

        Raises the errors of `Tiering.enable`, but does not wait. A broker is ready when it reports
        a retention of -1. Also returns None if the policy is no longer current.
        """
        if self.lift(enabling) and self._retention.is_lifted(enabling):
            return self.complete(enabling)
        return None

    def complete(self, enabling: TopicPolicy) -> TopicPolicy:
        """Write the ACTIVE policy; the broker's retention must be lifted.

        Raises FencedError if another process changed the policy, or the metadata refuses it.
        """
        active = replace(enabling, state=PolicyState.ACTIVE)
        # A command and a manager may do this at the same time; the second one finds it done.
        if self._policies.current(active.topic_id) != active:
            self._policies.require(enabling)
            self._policies.write(active)
        return active


class Tiering:
    """Activates policies. A call that stopped at any point can be repeated."""

    def __init__(
        self,
        policies: PolicyWriter,
        retention: BrokerRetention,
        clock: Clock,
        *,
        own_topics: frozenset[str],
        progress: Progress,
        recall: Recall,
        managers: FileDefaults | None = None,
    ) -> None:
        """Check policies against `managers`; None means the defaults."""
        self._policies = policies
        self._retention = retention
        self._activation = Activation(policies, retention)
        self._clock = clock
        self._own_topics = own_topics
        self._progress = progress
        self._recall = recall
        self._managers = managers or FileDefaults()

    def enable(self, topic: str, flags: PolicyFlags, *, timeout_ms: int) -> TopicPolicy:
        """Tier a topic or change its policy; return the policy once it is ACTIVE.

        Raises InvalidConfigError if the topic must not be tiered or the values contradict each
        other. Raises NotFoundError if the topic does not exist, RetriableError if time runs out,
        FencedError if another process changed the policy in the meantime.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        found, wanted = self._wanted(topic, flags, deadline_ms)
        current = self._policies.current(wanted.topic_id)
        is_active = current is not None and current.state is PolicyState.ACTIVE
        if is_active and is_lifted_on(found, wanted):
            active = replace(wanted, state=PolicyState.ACTIVE)
            self._policies.write(active)
            return active
        return self.activate(wanted, timeout_ms=deadline_ms - self._clock.monotonic_ms())

    def preview(self, topic: str, flags: PolicyFlags, *, timeout_ms: int) -> TopicPolicy:
        """Return the policy that `enable` would activate; change nothing. Raises its errors."""
        _, wanted = self._wanted(topic, flags, self._clock.monotonic_ms() + timeout_ms)
        return replace(wanted, state=PolicyState.ACTIVE)

    def _wanted(
        self, topic: str, flags: PolicyFlags, deadline_ms: int
    ) -> tuple[TopicOnReplicas, TopicPolicy]:
        """Return the topic as its brokers know it, and the policy that `flags` request."""
        found = self._retention.find(topic, deadline_ms=deadline_ms)
        configs = found.leader_configs
        check_tierable(configs, own_topics=self._own_topics)
        current = self._policies.current(found.topic.topic_id)
        if current is None:
            configs = self.configs_before(found)
        wanted = enabling_policy(
            topic=topic,
            topic_id=found.topic.topic_id,
            current=current,
            flags=flags,
            configs=configs,
            managers=self._managers,
            levels=self._policies.levels(),
        )
        return found, wanted

    def configs_before(self, found: TopicOnReplicas) -> TopicConfigs:
        """Return the settings that a topic without a policy had before it was tiered."""
        return self._retention.configs_before(found, self._recall)

    def activate(self, policy: TopicPolicy, *, timeout_ms: int) -> TopicPolicy:
        """Activate a policy whose originals are known. Raises the errors of `enable`."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        enabling = replace(policy, state=PolicyState.ENABLING)
        self._policies.write(enabling)
        self._progress("policy is ENABLING, originals recorded")
        self._retention.lift(enabling)
        self._progress("broker's retention set to -1, waiting for every replica's broker")
        self._retention.await_lifted(enabling, deadline_ms=deadline_ms)
        return self._activation.complete(enabling)
