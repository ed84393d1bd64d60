"""Writes topic policies into the metadata, and detects changes by other processes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from rlmm.events.policy import TopicPolicy, TopicPolicyChanged, topic_policy
from rlmm.events.policy_level import PolicyLevel, PolicyLevelSet, policy_levels, remove_policy_level
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import FencedError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


class PolicyWriter:
    """Reads and writes the policies of topics and their levels. Thread-safe.

    The last written policy is the valid one. So a caller with several effects must check, before
    each effect, that its policy is still the valid one (`require`).
    """

    def __init__(self, metadata: RemoteLogMetadataManager, new_id: Callable[[], UUID]) -> None:
        self._metadata = metadata
        self._new_id = new_id

    def current(self, topic_id: UUID) -> TopicPolicy | None:
        return topic_policy(self._metadata, topic_id)

    def levels(self) -> tuple[PolicyLevel, ...]:
        return policy_levels(self._metadata)

    def write(self, policy: TopicPolicy) -> None:
        """Publish this as the topic's policy, unless it already is.

        Raises FencedError if the policy was refused, RetriableError if the result is unknown.
        """
        if self.current(policy.topic_id) == policy:
            return
        result = self._metadata.publish(TopicPolicyChanged(event_id=self._new_id(), policy=policy))
        if not result.accepted:
            raise FencedError(
                "cannot record the policy: the metadata refuses it",
                topic=policy.topic,
                reason=result.refusal,
            )
        _log.info(LogLine("recorded policy", topic=policy.topic, state=policy.state.name))

    def write_level(self, level: PolicyLevel) -> None:
        """Publish a policy level.

        Raises FencedError if the level was refused, RetriableError if the result is unknown.
        """
        result = self._metadata.publish(PolicyLevelSet(event_id=self._new_id(), level=level))
        if not result.accepted:
            raise FencedError(
                "cannot record the policy level: the metadata refuses it",
                pattern=level.pattern,
                reason=result.refusal,
            )
        _log.info(LogLine("recorded policy level", pattern=level.pattern))

    def remove_level(self, pattern: str) -> None:
        """Remove a policy level; idempotent. Raises RetriableError if the result is unknown."""
        if remove_policy_level(self._metadata, pattern):
            _log.info(LogLine("removed policy level", pattern=pattern))

    def require(self, policy: TopicPolicy) -> None:
        """Raise FencedError if the topic's policy is no longer this one."""
        current = self.current(policy.topic_id)
        if current != policy:
            raise FencedError(
                "cannot continue: another process has changed the topic's policy",
                topic=policy.topic,
                state=None if current is None else current.state.name,
            )
