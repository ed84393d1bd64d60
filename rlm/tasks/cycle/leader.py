"""Runs one cycle over all partitions of tiered topics that the manager's broker hosts.

    partitions that the broker leads and hosts → their metadata is followed → claims
    → offsets, disk and remote metadata → views → plans
    → copies and deletions into their lanes → trims that no share group blocks, in one request

A cycle decides; lanes run the long work. A cycle decides nothing for a partition whose metadata it
has not read to the end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from rlm.broker.list_offsets import PartitionOffsets
from rlm.broker.partition_results import PartitionResults
from rlm.metrics.metrics import Metrics
from rlm.policy.gaps import gaps_of_losses
from rlm.policy.peers.gateways import live_gateways
from rlm.policy.plan import Plan, plan
from rlm.policy.share_groups import hold_for_share_groups
from rlm.policy.shedding import gaps_of_shed, sheddable
from rlm.policy.trim_gate import TrimDecision
from rlm.policy.view import Moment, PartitionView, PolicyLimits
from rlm.status.report import (
    PartitionReport,
    follower_report,
    leader_report,
    waiting_report,
)
from rlm.tasks.context.log_once import LogOnce, log_level
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.copying.repairs import Repairs
from rlm.tasks.cycle.gap_recorder import GapRecorder
from rlm.tasks.cycle.idle_watch import IdleWatch
from rlm.tasks.cycle.outage_watch import OutageWatch
from rlm.tasks.cycle.share_group_watch import ShareGroupWatch
from rlm.tasks.cycle.store_witness import StoreWitness
from rlm.tasks.deleting.expiry_lane import ExpiryLanes
from rlm.tasks.deleting.trimmer import Trimmer, TrimPlan
from rlm.tasks.leadership.hosted_partitions import HostedPartitions
from rlm.tasks.leadership.leadership import Leadership
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlmm.events.values import TopicPolicy
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOutlook:
    """Represents what the manager knows before a cycle.

    `untierable` has the rule for each topic id that must be neither copied nor trimmed. While the
    store is unreachable, a cycle neither copies nor deletes. It still measures lag and trims stored
    segments.
    """

    untierable: Mapping[UUID, str] = field(default_factory=dict)
    store_reachable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _BusyLanes:
    """Represents what a partition's lanes ran before the cycle read the partition's state."""

    copying: bool
    repairing: bool


class LeaderCycle:
    """Reads every hosted partition and starts what is due. Only `views_of` is thread-safe."""

    def __init__(  # noqa: PLR0913 - one for each part of the work
        self,
        ports: Ports,
        *,
        leadership: Leadership,
        copies: CopyLanes,
        repairs: Repairs,
        expiries: ExpiryLanes,
        trimmer: Trimmer,
        limits: PolicyLimits,
        metrics: Metrics | None = None,
        outages: OutageWatch | None = None,
        witness: StoreWitness | None = None,
    ) -> None:
        """Check no disk and shed nothing without `outages`; accept any store without `witness`."""
        self._broker = ports.broker
        self._source = ports.source
        self._metadata = ports.metadata
        self._hosted = HostedPartitions(ports.source, ports.metadata)
        self._leadership = leadership
        self._copies = copies
        self._expiries = expiries
        self._trimmer = trimmer
        self._share_groups = ShareGroupWatch(ports.share_groups, ports.clock)
        self._clock = ports.clock
        self._limits = limits
        self._outages = outages
        self._witness = witness
        self._repairs = repairs
        self._idle = IdleWatch(ports)
        self._gaps = GapRecorder(ports, metrics)
        self._log_once = LogOnce()
        self._outlook = CycleOutlook()

    def step(self, outlook: CycleOutlook) -> tuple[PartitionReport, ...]:
        """Run one cycle; return a report of each hosted partition of a tiered topic.

        Raises RetriableError if the broker or the metadata topic does not answer, or as
        `StoreWitness.require`; then the cycle copies, trims, sheds and deletes nothing. Raises
        InvalidConfigError if the broker's address answers from another cluster.
        """
        self._outlook = outlook
        policies = {policy.topic_id: policy for policy in self._metadata.topic_policies()}
        topics = {policy.topic for policy in policies.values()}
        led = self._broker.leadership(topics) if topics else {}
        epochs = {tip: epoch for tip, epoch in led.items() if tip.topic_id in policies}
        followed = self._hosted.step(epochs.keys(), policies.keys())
        self._leadership.claim_all(self._leadership.keep_only(epochs))
        if self._witness is not None and outlook.store_reachable:
            self._witness.require((*epochs, *followed))
        reports = self._lead(policies, outlook)
        seen = {report.topic_id_partition for report in reports}
        unclaimed = (
            waiting_report(tip, epoch, claimed=False, problem="leadership is not claimed yet")
            for tip, epoch in epochs.items()
            if tip not in seen
        )
        return (*reports, *unclaimed, *map(follower_report, followed))

    def views_of(self, topic: str, partition: int | None = None) -> tuple[PartitionView, ...]:
        """Return current views of the topic's led partitions, or of one of them. Thread-safe.

        Raises as `step`, and any error that prevents a partition's view.
        """
        leads = [
            lead
            for lead in self._leadership.leads()
            if lead.topic_id_partition.topic == topic
            and partition in (None, lead.topic_id_partition.partition)
        ]
        offsets = self._broker.offsets(
            {lead.topic_id_partition: lead.writer.leader_epoch for lead in leads}
        )
        policies = {policy.topic_id: policy for policy in self._metadata.topic_policies()}
        return tuple(
            self._view(lead, policies[topic_id], offsets)
            for lead in sorted(leads, key=lambda each: each.topic_id_partition)
            if (topic_id := lead.topic_id_partition.topic_id) in policies
        )

    def _lead(
        self, policies: Mapping[UUID, TopicPolicy], outlook: CycleOutlook
    ) -> list[PartitionReport]:
        leads = self._leadership.leads()
        self._copies.write_off_overdue()
        led = {lead.topic_id_partition for lead in leads}
        self._copies.keep_only(led)
        self._repairs.keep_up(led)
        offsets = self._broker.offsets(
            {lead.topic_id_partition: lead.writer.leader_epoch for lead in leads}
        )
        reports = []
        trims: dict[TopicIdPartition, TrimPlan] = {}
        for lead in leads:
            tip = lead.topic_id_partition
            # Checked before the view: a copy that ends in between would be planned again. Only this
            # thread starts copies.
            busy = _BusyLanes(
                copying=self._copies.is_busy(tip), repairing=self._repairs.is_busy(tip)
            )
            deletes_by = self._expiries.policy_under_way(tip)
            planned_at_ms = self._clock.monotonic_ms()
            try:
                view = self._view(lead, policies[tip.topic_id], offsets)
                if deletes_by not in (None, view.policy):
                    # The view still counts segments as stored that these deletions may remove.
                    raise RetriableError("deletions by the policy before this one are under way")
            except TieredStorageError as error:
                self._log_changed(tip, "partition waits", error)
                reports.append(
                    waiting_report(tip, lead.writer.leader_epoch, claimed=True, problem=str(error))
                )
                continue
            self._log_once.clear(tip)
            if self._outages is not None:
                self._outages.see(view)
            view = self._idle.look(view)
            decided = plan(view)
            self._gaps.look(lead, view, decided.gaps)
            self._record_losses(lead, view, decided)
            if outlook.store_reachable:
                self._expiries.offer(lead, view, decided)
                self._offer_copies(lead, view, decided, busy)
            trim = self._within_share_groups(view, decided.trim)
            if trim.offset is not None:
                trims[tip] = _trim_plan(lead, view, trim, planned_at_ms)
            failure = self._repairs.failure(tip, decided.repair)
            reports.append(leader_report(view, trim, decided.expiry_blocked, failure))
            if self._trimmer.is_due(trims):  # the first plan must not grow too old
                self._trim(trims)
                trims.clear()
        self._shed(leads, policies, trims)
        self._trim(trims)
        return reports

    def _record_losses(self, lead: PartitionLead, view: PartitionView, decided: Plan) -> None:
        """Record the gaps of accepted losses, in a cycle that records no other gap."""
        if decided.gaps is None and decided.losses:
            proven = self._expiries.take_proven(lead.topic_id_partition, decided.losses)
            gaps = gaps_of_losses(view, proven)
            if gaps is not None:
                self._gaps.record(lead, view, gaps)

    def _offer_copies(
        self, lead: PartitionLead, view: PartitionView, decided: Plan, busy: _BusyLanes
    ) -> None:
        if not busy.copying:
            self._copies.offer(lead, decided.copies, view.lineage)
        if not busy.repairing:
            self._repairs.offer(lead, decided.repair, view.lineage)

    def _shed(
        self,
        leads: Iterable[PartitionLead],
        policies: Mapping[UUID, TopicPolicy],
        trims: dict[TopicIdPartition, TrimPlan],
    ) -> None:
        """Add the trims of data to shed, after their gaps are recorded.

        The cycle does not keep the views of all partitions in memory, so this reads each view
        again. Data that may no longer be shed stays.
        """
        chosen = {} if self._outages is None else self._outages.choose()
        for lead in leads:
            tip = lead.topic_id_partition
            if tip not in chosen:
                continue
            asked_at_ms = self._clock.monotonic_ms()
            try:
                offsets = self._broker.offsets({tip: lead.writer.leader_epoch})
                view = self._view(lead, policies[tip.topic_id], offsets)
            except TieredStorageError as error:
                self._log_changed(tip, "partition waits", error)
                continue
            found = sheddable(view)
            if found is None:
                continue
            offset = min(chosen[tip].offset, found.segments[-1].offsets.end_offset)
            decision = TrimDecision(offset=offset, rule=chosen[tip].rule)
            decision = self._within_share_groups(view, decision)
            if decision.offset is None or decision.offset <= view.local_start_offset:
                continue
            gaps = gaps_of_shed(view, decision.offset)
            if gaps is None or self._gaps.record(lead, view, gaps):
                trims[tip] = _trim_plan(lead, view, decision, asked_at_ms)

    def _within_share_groups(self, view: PartitionView, decision: TrimDecision) -> TrimDecision:
        """Limit a trim by the share groups. Asks only for a trim, so that the answer is fresh."""
        if decision.offset is None:
            return decision
        start = self._share_groups.start_of(view.topic_id_partition)
        return hold_for_share_groups(view, decision, start)

    def _trim(self, trims: Mapping[TopicIdPartition, TrimPlan]) -> None:
        """Carry out trims; the next cycle plans a failed trim again. The reports stay valid."""
        try:
            self._trimmer.trim(trims)
        except RetriableError as error:
            if self._log_once.changed(Trimmer, error.message):
                _log.warning("trims wait", extra={"partitions": len(trims), "error": error})
        else:
            self._log_once.clear(Trimmer)

    def _log_changed(self, tip: TopicIdPartition, what: str, error: TieredStorageError) -> None:
        level = log_level(self._log_once, tip, what, error)
        _log.log(level, what, extra={"topic_partition": tip, "error": error})

    def _view(
        self,
        lead: PartitionLead,
        policy: TopicPolicy,
        offsets: PartitionResults[PartitionOffsets],
    ) -> PartitionView:
        tip = lead.topic_id_partition
        if tip in offsets.failed:
            raise offsets.failed[tip]
        # Read before and after the list of segments: a copy that starts or ends in between must not
        # look abandoned.
        in_flight_before = self._in_flight(tip)
        damage = self._repairs.damage_of(tip)
        segments = tuple(self._metadata.list_remote_log_segments(tip, states=tuple(SegmentState)))
        return PartitionView(
            topic_id_partition=tip,
            policy=policy,
            writer=lead.writer,
            offsets=offsets.succeeded[tip],
            in_flight=in_flight_before | self._in_flight(tip),
            damage=damage,
            local=self._source.local_log(tip),
            state=self._metadata.partition_state(tip),
            segments=segments,
            moment=Moment(wall_ms=self._clock.wall_ms(), broker_ms=self._metadata.broker_time_ms()),
            limits=self._limits,
            untierable=self._outlook.untierable.get(tip.topic_id),
            store_reachable=self._outlook.store_reachable,
            gateways=live_gateways(self._metadata.registrations(), self._metadata.broker_time_ms()),
            policy_position=self._metadata.topic_policy_position(tip.topic_id),
            newer=self._metadata.newer_record(tip),
            copy_failure=self._copies.failure(tip),
            paused=self._metadata.paused_tasks(tip.topic_id),
        )

    def _in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        return self._copies.in_flight(tip) | self._repairs.in_flight(tip)


def _trim_plan(
    lead: PartitionLead, view: PartitionView, decision: TrimDecision, planned_at_ms: int
) -> TrimPlan:
    assert decision.offset is not None
    return TrimPlan(
        writer=lead.writer,
        offset=decision.offset,
        lineage=view.lineage,
        rule=decision.rule,
        planned_at_ms=planned_at_ms,
        is_stored=decision.offset <= view.covered_end_offset,
    )
