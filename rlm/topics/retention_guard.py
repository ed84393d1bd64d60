"""Checks and corrects the retention of tiered topics, and finds topics that must not be tiered.

Runs in every manager, once per cycle. Every manager whose broker leads a partition of a topic
corrects the topic: all changes are idempotent, and a stopped manager must not prevent them. If
`reassert` is False, a manager only reports an ACTIVE topic whose retention is limited. Each manager
itself finds the topics that must not be copied or trimmed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from rlm.broker.cluster import ClusterView
from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.facts.topic_configs import TopicConfigs
from rlm.policy.topic.topic_policy import deletes_nothing, untierable_reason
from rlm.tasks.context.log_once import LogOnce
from rlm.topics.enable import Activation
from rlmm.events.policy import PolicyState, TopicPolicy, topic_policies
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_POLICIES_READ_MS = 5_000
_TIERED = frozenset({PolicyState.ENABLING, PolicyState.ACTIVE, PolicyState.DISABLING})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReport:
    """Represents the result of one check, by topic id.

    `untierable` contains the reason for each hosted topic that must be neither copied nor trimmed.
    `limited` contains the retention of each ACTIVE topic with a led partition, if the broker may
    delete its records by itself.
    """

    untierable: Mapping[UUID, str] = field(default_factory=dict)
    limited: Mapping[UUID, str] = field(default_factory=dict)


class RetentionKeeper:
    """Checks all tiered topics that have a replica on the manager's broker. Not thread-safe."""

    def __init__(
        self,
        activation: Activation,
        *,
        topics: TopicAdmin,
        metadata: RemoteLogMetadataManager,
        node_id: int,
        reassert: bool,
        alarm: Callable[[str], None],
    ) -> None:
        """Call `alarm` with the topic each time a check finds its retention limited."""
        self._activation = activation
        self._topics = topics
        self._metadata = metadata
        self._node_id = node_id
        self._reassert = reassert
        self._alarm = alarm
        self._log_once = LogOnce()
        self._has_read: bool | None = None

    def step(self) -> RetentionReport:
        """Check once, and correct what this manager must correct.

        Does not wait for corrections to take effect.

        A topic is untierable while the broker does not report its settings. Raises RetriableError
        if a broker does not answer, and NotFoundError if this manager's broker is not live.
        """
        self._has_read = None
        policies = [each for each in topic_policies(self._metadata) if each.state in _TIERED]
        self._log_once.retain({each.topic_id for each in policies})
        if not policies:
            return RetentionReport()
        view = self._topics.view([each.topic for each in policies])
        hosted = [each for each in policies if self._hosts(view, each)]
        if not hosted:
            return RetentionReport()
        configs = self._topics.configs_at(self._node_id, [each.topic for each in hosted])
        untierable: dict[UUID, str] = {}
        limited: dict[UUID, str] = {}
        for policy in hosted:
            found = self._tierable(policy, configs[policy.topic])
            if isinstance(found, str):
                untierable[policy.topic_id] = found
            elif self._leads_any_partition(view, policy):
                values = self._keep(policy, found)
                if values is not None:
                    limited[policy.topic_id] = values
        return RetentionReport(untierable=untierable, limited=limited)

    def _tierable(
        self, policy: TopicPolicy, found: TopicConfigs | TieredStorageError
    ) -> TopicConfigs | str:
        """Return the topic's settings; the reason if they forbid tiering or are unknown."""
        if isinstance(found, TieredStorageError):
            reason = f"the broker does not return the topic's settings: {found}"
        else:
            forbidden = untierable_reason(found)
            if forbidden is None:
                self._log_once.clear(policy.topic_id)
                return found
            reason = forbidden
        if self._log_once.changed(policy.topic_id, reason):
            _log.warning(LogLine("the topic cannot be tiered", topic=policy.topic, rule=reason))
        return reason

    def _keep(self, policy: TopicPolicy, configs: TopicConfigs) -> str | None:
        """Correct one topic; return the broker's retention if it was limited, else None."""
        values: str | None = None
        try:
            if policy.state is PolicyState.ENABLING:
                self._require_policies_read()
                self._activation.carry_on(policy)
            elif policy.state is PolicyState.ACTIVE and not deletes_nothing(configs):
                values = (
                    f"retention.ms={configs.retention_ms} retention.bytes={configs.retention_bytes}"
                )
                self._handle_limit(policy, values)
        except TieredStorageError as error:
            if self._log_once.changed((policy.topic_id, "keep"), error.message):
                _log.warning(
                    LogLine(
                        "cannot check or correct a topic's retention; the next check tries again",
                        topic=policy.topic,
                        error=error,
                    )
                )
        else:
            self._log_once.clear((policy.topic_id, "keep"))
        if values is None:
            self._log_once.clear((policy.topic_id, "limited"))
        return values

    def _handle_limit(self, policy: TopicPolicy, values: str) -> None:
        self._alarm(policy.topic)
        if self._log_once.changed((policy.topic_id, "limited"), values):
            _log.warning(
                LogLine(
                    "the broker may delete records that are not stored: "
                    "the topic is tiered, but its retention is limited",
                    topic=policy.topic,
                    found=values,
                    reasserted=self._reassert,
                )
            )
        if self._reassert:
            self._require_policies_read()
            self._activation.lift(policy)

    def _require_policies_read(self) -> None:
        """Raise RetriableError unless the newest policies are read; waits once per check.

        A policy that ended meanwhile has restored the topic's retention, which must not become -1
        again.
        """
        if self._has_read is None:
            self._has_read = self._metadata.is_cluster_current(timeout_ms=_POLICIES_READ_MS)
        if not self._has_read:
            raise RetriableError(
                "cannot correct the retention: the newest policies are not read",
                advice="Look for errors of the metadata topic in the log, if this continues",
            )

    def _hosts(self, view: ClusterView, policy: TopicPolicy) -> bool:
        topic = view.topics.get(policy.topic)
        return (
            topic is not None
            and topic.topic_id == policy.topic_id
            and self._node_id in topic.replica_ids()
        )

    def _leads_any_partition(self, view: ClusterView, policy: TopicPolicy) -> bool:
        partitions = view.topics[policy.topic].partitions
        return any(each.leader_id == self._node_id for each in partitions)
