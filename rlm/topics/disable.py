"""Disables a topic's tiering in a fixed order of effects.

    DISABLING accepted (trims stop, copying continues) → rolled segments are stored
    → unless forced: refused if records are at risk, ACTIVE again
    → the broker's retention restored → DISABLED (copying stops)

If a run stops in between, the topic stays DISABLING: no manager trims it, and the same command
completes the change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from rlm.broker.topics.default_retention import DefaultRetention
from rlm.broker.topics.topic_admin import LogSpan, TopicAdmin, TopicOnReplicas
from rlm.facts.topic_configs import RETENTION_BYTES, RETENTION_MS
from rlm.policy.candidates import Lag
from rlm.policy.topic.disable_gate import LocalExtent, RecordsAtRisk, RiskReason, records_at_risk
from rlm.policy.topic.levels import tiering_level
from rlm.policy.topic.topic_policy import new_policy
from rlm.topics.broker_retention import BrokerRetention
from rlm.topics.enable import Progress, Tiering
from rlm.topics.policy_writer import PolicyWriter
from rlmm.events.policy import UNLIMITED, PolicyState, TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_POLL_INTERVAL_MS = 1000  # Each poll sends requests to every manager and every leader.
_BEING_COPIED = frozenset({RiskReason.NOT_STORED, RiskReason.NOT_KNOWN, RiskReason.DAMAGED})


class CopyLagSource(Protocol):
    """Reports what the leaders' managers know about unstored rolled segments."""

    def lags(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, Lag]:
        """Return each partition's lag under exactly this policy; omit those that are unknown."""

    def silence(self, tip: TopicIdPartition) -> str:
        """Return why the last call of `lags` omitted a partition, and what to do."""


class TieringEnd:
    """Disables policies. A call that stopped at any point can be repeated."""

    def __init__(
        self,
        tiering: Tiering,
        policies: PolicyWriter,
        retention: BrokerRetention,
        *,
        topics: TopicAdmin,
        metadata: RemoteLogMetadataManager,
        lags: CopyLagSource,
        clock: Clock,
        progress: Progress,
    ) -> None:
        self._tiering = tiering
        self._policies = policies
        self._retention = retention
        self._topics = topics
        self._metadata = metadata
        self._lags = lags
        self._clock = clock
        self._progress = progress

    def disable(
        self, topic: str, *, delete_remote: bool, force: bool, timeout_ms: int
    ) -> TopicPolicy:
        """Disable a topic's tiering; return the DISABLED policy after the retention is restored.

        **Data loss:** with `force`, gives up the records that are still at risk after `timeout_ms`.
        Raises InvalidConfigError if the topic is not tiered and no pattern tiers it, RetriableError
        if records are at risk (the topic is ACTIVE again), and the errors of `Tiering.enable`. If
        the brokers do not answer before the timeout, the topic stays DISABLING.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        found = self._retention.find(topic, deadline_ms=deadline_ms)
        policy = self._tiered(found)
        if policy.state is PolicyState.DISABLED:
            disabled = replace(policy, delete_remote=policy.delete_remote or delete_remote)
            self._policies.write(disabled)
            return disabled
        restored = self._restored(policy, found)
        disabling = replace(policy, state=PolicyState.DISABLING, delete_remote=delete_remote)
        self._policies.write(disabling)
        outcome = "they are given up" if force else "the topic becomes ACTIVE again"
        self._progress(
            "policy is DISABLING, trims have stopped; if records are not stored within "
            f"{max(1, timeout_ms // 1000)} s, {outcome}"
        )
        risks = self._await_stored(disabling, found, restored, deadline_ms=deadline_ms)
        if risks and not force:
            self._back(disabling, timeout_ms=timeout_ms)
            raise self._refusal(topic, risks)
        for risk in risks:
            _log.warning(
                LogLine(
                    "disabling tiering by --force: the broker's retention may delete records that "
                    "are not stored",
                    topic=topic,
                    at_risk=risk,
                )
            )
        self._policies.require(disabling)
        self._retention.restore(disabling)
        self._progress("broker's retention restored")
        self._policies.require(disabling)
        disabled = replace(disabling, state=PolicyState.DISABLED)
        self._policies.write(disabled)
        return disabled

    def preview(
        self, topic: str, *, timeout_ms: int
    ) -> tuple[TopicPolicy, tuple[RecordsAtRisk, ...]]:
        """Return the policy and the records that disabling would put at risk; change nothing."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        found = self._retention.find(topic, deadline_ms=deadline_ms)
        policy = self._tiered(found)
        return policy, self._risks(policy, found, self._restored(policy, found))

    def _tiered(self, found: TopicOnReplicas) -> TopicPolicy:
        """Return the topic's policy; a DISABLED one for a topic that a pattern would tier."""
        topic, topic_id = found.topic.topic, found.topic.topic_id
        policy = self._policies.current(topic_id)
        if policy is not None:
            return policy
        if tiering_level(topic, self._policies.levels()) is None:
            raise InvalidConfigError(
                "cannot disable tiering: the topic is not tiered",
                topic=topic,
                advice="`rlm topic list` shows tiered topics",
            )
        before = self._tiering.configs_before(found)
        if before != found.leader_configs:
            raise InvalidConfigError(
                "cannot disable tiering: the topic's policy was lost, and its retention is -1",
                topic=topic,
                advice="Run `rlm topic set` with its total retention, then this command again",
            )
        new = new_policy(topic, topic_id, before)
        return replace(new, state=PolicyState.DISABLED)

    def _restored(self, policy: TopicPolicy, found: TopicOnReplicas) -> DefaultRetention:
        """Return the retention after a restore: the originals, else the broker's own defaults."""
        default = self._topics.default_retention(found.leader_id)
        given = {o.name: int(o.value) for o in policy.originals if o.value is not None}
        return DefaultRetention(
            retention_ms=given.get(RETENTION_MS, default.retention_ms),
            retention_bytes=given.get(RETENTION_BYTES, default.retention_bytes),
        )

    def _refusal(self, topic: str, risks: Sequence[RecordsAtRisk]) -> RetriableError:
        """Return why tiering stays enabled; advise `--force` only if all risks are known."""
        unknown = [risk for risk in risks if risk.reason is RiskReason.NOT_KNOWN]
        if unknown:
            return RetriableError(
                "cannot disable tiering, the topic is ACTIVE again: managers do not answer, so it "
                "is unknown which records are not stored",
                topic=topic,
                waits_for="; ".join(map(self._risk_text, unknown)),
                advice="Run the command again when they answer",
            )
        return RetriableError(
            "cannot disable tiering, the topic is ACTIVE again: records would be lost",
            topic=topic,
            at_risk="; ".join(map(str, risks)),
            advice="Run the command again when they are stored, or give them up with --force",
        )

    def _risk_text(self, risk: RecordsAtRisk) -> str:
        if risk.reason is not RiskReason.NOT_KNOWN:
            return str(risk)
        return f"{risk}: {self._lags.silence(risk.topic_id_partition)}"

    def _back(self, disabling: TopicPolicy, *, timeout_ms: int) -> None:
        """Activate the policy again: an interrupted run may have restored the retention."""
        self._policies.require(disabling)
        self._tiering.activate(replace(disabling, delete_remote=False), timeout_ms=timeout_ms)

    def _await_stored(
        self,
        policy: TopicPolicy,
        found: TopicOnReplicas,
        restored: DefaultRetention,
        *,
        deadline_ms: int,
    ) -> tuple[RecordsAtRisk, ...]:
        """Return the records at risk once copying cannot reduce them or the deadline has passed."""
        shown = ""
        while True:
            late = self._clock.monotonic_ms() >= deadline_ms
            try:
                risks = self._risks(policy, found, restored)
            except RetriableError as error:
                if late:
                    raise
                waiting = str(error)
            else:
                if late or not any(risk.reason in _BEING_COPIED for risk in risks):
                    return risks
                waiting = "; ".join(map(self._risk_text, risks))
            if waiting != shown:
                self._progress(f"waiting: {waiting}")
                shown = waiting
            self._clock.sleep_ms(_POLL_INTERVAL_MS)

    def _risks(
        self, policy: TopicPolicy, found: TopicOnReplicas, restored: DefaultRetention
    ) -> tuple[RecordsAtRisk, ...]:
        is_timed = restored.retention_ms != UNLIMITED
        since_ms = max(0, self._clock.wall_ms() - restored.retention_ms) if is_timed else 0
        lags = self._lags.lags(policy)
        spans = self._topics.log_spans(found.topic, since_ms)
        risks = (
            self._risk(partition, _extent(span, restored), lags.get(partition))
            for partition, span in sorted(spans.items())
        )
        return tuple(risk for risk in risks if risk is not None)

    def _risk(
        self, partition: TopicIdPartition, extent: LocalExtent, lag: Lag | None
    ) -> RecordsAtRisk | None:
        records = self._metadata.list_remote_log_segments(partition)
        return records_at_risk(
            partition,
            state=self._metadata.partition_state(partition),
            segments=(record.metadata for record in records),
            extent=extent,
            lag=lag,
        )


def _extent(span: LogSpan, restored: DefaultRetention) -> LocalExtent:
    is_timed = restored.retention_ms != UNLIMITED
    return LocalExtent(
        local_start_offset=span.local_start_offset,
        end_offset=span.high_watermark,
        kept_from_offset=span.since_offset if is_timed else span.local_start_offset,
        is_size_limited=restored.retention_bytes != UNLIMITED,
    )
