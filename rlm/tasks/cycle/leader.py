"""Runs one cycle over all partitions of tiered topics that the manager's broker hosts.

    led and hosted partitions found → their metadata followed → one task for each led partition
    → partitions claimed
    → for each task: offsets, disk and metadata read → view → streams of others fenced → plan
    → copies, merges and deletions queued in their lanes, streams permitted
    → trims limited by share groups → trims sent in one request, or in several if plans get old

A cycle decides; lanes run the long work. A cycle decides nothing for a partition until the manager
has read the partition's metadata to its end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.broker.partition_results import PartitionResults
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.metrics.metrics import Metrics
from rlm.policy.gaps import gaps_of_losses
from rlm.policy.plan import Plan, plan
from rlm.policy.share_groups import limit_by_share_groups
from rlm.policy.shedding import gaps_of_shed, sheddable
from rlm.policy.stream.permit import waited_before_ms
from rlm.policy.trim_gate import TrimDecision
from rlm.policy.view import AttemptFailure, PartitionView
from rlm.status.document import PartitionReport, StreamReport
from rlm.status.report import follower_report, leader_report, waiting_report
from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.copying.merge_lane import MergeLanes
from rlm.tasks.copying.repairs import Repairs
from rlm.tasks.copying.stream_lane import StreamLanes
from rlm.tasks.cycle.gap_recorder import GapRecorder
from rlm.tasks.cycle.idle_watch import IdleWatch
from rlm.tasks.cycle.outage_watch import OutageWatch
from rlm.tasks.cycle.partition_views import CycleOutlook, PartitionViews
from rlm.tasks.cycle.share_group_watch import ShareGroupWatch
from rlm.tasks.cycle.stream_fence import StreamFence
from rlm.tasks.deleting.expiry_lane import ExpiryLanes
from rlm.tasks.deleting.trimmer import Trimmer, TrimPlan
from rlm.tasks.leadership.hosted_partitions import HostedPartitions
from rlm.tasks.leadership.leadership import Leadership
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.policy import TopicPolicy, topic_policies
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_VIEW = "view"
_ACCOUNT = "account"


@dataclass(frozen=True, slots=True, kw_only=True)
class _BusyLanes:
    """Represents which work of a partition ran or waited before the cycle read its state.

    `deletes_by` is the policy of running or waiting deletions; None if there are none.
    """

    is_copying: bool
    is_repairing: bool
    is_merging: bool
    deletes_by: TopicPolicy | None


class LeaderCycle:
    """Evaluates every led partition and starts the work that is due. Not thread-safe."""

    def __init__(  # noqa: PLR0913 - one for each part of the work
        self,
        ports: Ports,
        *,
        leadership: Leadership,
        views: PartitionViews,
        copies: CopyLanes,
        repairs: Repairs,
        streams: StreamLanes,
        merges: MergeLanes,
        expiries: ExpiryLanes,
        trimmer: Trimmer,
        metrics: Metrics | None = None,
        outages: OutageWatch | None = None,
    ) -> None:
        """Check no disk and shed nothing if `outages` is None."""
        self._broker = ports.broker
        self._metadata = ports.metadata
        self._hosted = HostedPartitions(ports.source, ports.metadata)
        self._leadership = leadership
        self._views = views
        self._copies = copies
        self._expiries = expiries
        self._trimmer = trimmer
        self._share_groups = ShareGroupWatch(ports.share_groups, ports.clock)
        self._clock = ports.clock
        self._outages = outages
        self._witness = ports.witness
        self._repairs = repairs
        self._streams = streams
        self._merges = merges
        self._idle = IdleWatch(ports)
        self._gaps = GapRecorder(ports, metrics)
        self._fence = StreamFence(ports)
        self._log_once = LogOnce()
        self._streamed: tuple[PartitionTask, ...] = ()

    def streamed(self) -> tuple[PartitionTask, ...]:
        """Return the tasks that the last cycle permitted to stream. Thread-safe."""
        return self._streamed

    def step(self, outlook: CycleOutlook) -> tuple[PartitionReport, ...]:
        """Run one cycle; return a report for each hosted partition of a tiered topic.

        Raises RetriableError if the broker or the metadata topic does not answer. Also raises the
        errors of `StoreWitness.require`. The cycle then starts no copy, trim, shed or deletion.
        Raises InvalidConfigError if a broker of another cluster answers at the broker's address.
        """
        self._views.outlook = outlook
        policies = {policy.topic_id: policy for policy in topic_policies(self._metadata)}
        topics = {policy.topic for policy in policies.values()}
        led = self._broker.leadership(topics) if topics else {}
        epochs = {tip: epoch for tip, epoch in led.items() if tip.topic_id in policies}
        followed = self._hosted.step(epochs.keys(), policies.keys())
        self._leadership.claim_all(self._leadership.keep_only(epochs))
        if self._witness is not None and outlook.is_store_reachable:
            self._witness.require((*epochs, *followed))
        reports = self._lead(policies, outlook)
        unclaimed = (
            _waiting(task, "leadership is not claimed yet")
            for task in self._leadership.tasks()
            if not task.leads
        )
        return (*reports, *unclaimed, *map(follower_report, followed))

    def _lead(
        self, policies: Mapping[UUID, TopicPolicy], outlook: CycleOutlook
    ) -> list[PartitionReport]:
        self._copies.write_off_overdue()
        self._repairs.write_off_overdue()
        self._streams.write_off_overdue()
        self._merges.write_off_overdue()
        tasks = self._leadership.led()
        offsets = self._broker.offsets(
            {task.topic_id_partition: task.leader_epoch for task in tasks}
        )
        reports = []
        trims: dict[TopicIdPartition, TrimPlan] = {}
        for task in tasks:
            policy = policies[task.topic_id_partition.topic_id]
            reports.append(self._step(task, policy, offsets, outlook, trims))
            if self._trimmer.is_due(trims):  # The first plan must not grow too old.
                self._trim(trims)
                trims.clear()
        self._streamed = tuple(task for task in tasks if task.streaming.permit is not None)
        self._shed(tasks, policies, trims)
        self._trim(trims)
        return reports

    def _step(
        self,
        task: PartitionTask,
        policy: TopicPolicy,
        offsets: PartitionResults[PartitionOffsets],
        outlook: CycleOutlook,
        trims: dict[TopicIdPartition, TrimPlan],
    ) -> PartitionReport:
        """Decide for one partition: start what is due, and add its trim to `trims`."""
        tip = task.topic_id_partition
        # The lanes are checked before the view: otherwise a copy that ends in between would be
        # planned again. Only this thread starts copies.
        busy = _BusyLanes(
            is_copying=self._copies.is_busy(tip),
            is_repairing=self._repairs.is_busy(tip),
            is_merging=self._merges.is_busy(tip),
            deletes_by=self._expiries.policy_under_way(tip),
        )
        planned_at_ms = self._clock.monotonic_ms()
        stream_version = task.streaming.version()
        try:
            view = self._view(task, policy, offsets, busy)
        except TieredStorageError as error:
            _log_waiting(task, error)
            return _waiting(task, str(error))
        task.log.clear(_VIEW)
        if self._outages is not None:
            self._outages.see(view)
        view = self._idle.check_age(task, view)
        decided = plan(view)
        self._gaps.record_if_repeated(task, view, decided.gaps)
        self._record_losses(task, view, decided)
        self._complete_account(task, view)
        if task.streaming.is_new:
            task.streaming.count_from(planned_at_ms - waited_before_ms(view))
        task.streaming.permit_from(decided.stream, stream_version, view.copy_end_offset)
        if outlook.is_store_reachable:
            self._expiries.offer(task, view, decided)
            self._offer_copies(task, view, decided, busy)
        trim = self._within_share_groups(view, decided.trim)
        if trim.offset is not None:
            trims[tip] = _trim_plan(task, view, trim, planned_at_ms)
        failure = task.repairing.failure if decided.repair.segments else None
        stream = self._stream_report(task, view, decided)
        return leader_report(view, trim, decided.expiry_blocked, failure, stream)

    def _stream_report(
        self, task: PartitionTask, view: PartitionView, decided: Plan
    ) -> StreamReport | None:
        if not view.is_streamed:
            return None
        now_ms = self._clock.monotonic_ms()
        found = StreamReport(
            unstored_ms=task.streaming.unstored_ms(now_ms),
            rollover_ms=view.offload.segment_rollover_ms,
            open_transaction_ms=task.streaming.open_transaction_ms(view.offsets, now_ms),
            merge_waiting_segments=sum(len(each.parts) for each in decided.waiting_merges),
            merge_waiting_bytes=sum(each.size_bytes for each in decided.waiting_merges),
            merge_failure=_merge_failure(task, view, decided),
        )
        opened = task.streaming.open_stream
        if opened is None:
            return found
        return replace(
            found,
            begin_offset=opened.begin_offset,
            position_offset=opened.end_offset,
            size_bytes=opened.size_bytes,
            age_ms=now_ms - opened.opened_at_ms,
        )

    def _view(
        self,
        task: PartitionTask,
        policy: TopicPolicy,
        offsets: PartitionResults[PartitionOffsets],
        busy: _BusyLanes,
    ) -> PartitionView:
        view = self._views.of(task, policy, offsets)
        if busy.deletes_by not in (None, view.policy):
            # The view counts segments as stored although these deletions may remove them.
            raise RetriableError(
                "cannot plan the partition: deletions of an earlier policy still run"
            )
        return self._fence.fence_open_streams(view)

    def _record_losses(self, task: PartitionTask, view: PartitionView, decided: Plan) -> None:
        """Record the gaps of accepted losses, unless the plan contains other gaps to record."""
        if decided.gaps is None and decided.losses:
            proven = task.take_proven_losses()
            losses = [each for each in decided.losses if each.record.metadata.segment_id in proven]
            gaps = gaps_of_losses(view, losses)
            if gaps is not None:
                self._gaps.record(task, view, gaps)

    def _complete_account(self, task: PartitionTask, view: PartitionView) -> None:
        """Complete the accounts of offload segments; after an error, the next cycle tries again."""
        if not view.is_owned or view.newer is not None:
            return
        try:
            self._streams.complete_account(task, view.lineage)
        except TieredStorageError as error:
            what = "cannot complete the accounts of offload segments"
            tip = task.topic_id_partition
            if task.log.changed(_ACCOUNT, error.message):
                _log.info(LogLine(what, topic_partition=tip, error=error))
        else:
            task.log.clear(_ACCOUNT)

    def _offer_copies(
        self, task: PartitionTask, view: PartitionView, decided: Plan, busy: _BusyLanes
    ) -> None:
        if not busy.is_copying and not self._streams.is_busy(task.topic_id_partition):
            self._copies.offer(task, decided.copies, view.lineage)
        if not busy.is_repairing:
            self._repairs.offer(task, decided.repair, view.lineage)
        if decided.merge is not None and not busy.is_merging:
            self._merges.offer(task, decided.merge, view.lineage)

    def _shed(
        self,
        tasks: Iterable[PartitionTask],
        policies: Mapping[UUID, TopicPolicy],
        trims: dict[TopicIdPartition, TrimPlan],
    ) -> None:
        """Record the gaps of the data to shed, then add its trims to `trims`.

        The cycle does not keep the views of all partitions in memory, so this method makes each
        view again. It does not shed data that may no longer be shed.
        """
        chosen = {} if self._outages is None else self._outages.choose()
        for task in tasks:
            tip = task.topic_id_partition
            if tip not in chosen:
                continue
            asked_at_ms = self._clock.monotonic_ms()
            try:
                offsets = self._broker.offsets({tip: task.leader_epoch})
                view = self._views.of(task, policies[tip.topic_id], offsets)
            except TieredStorageError as error:
                _log_waiting(task, error)
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
            if gaps is None or self._gaps.record(task, view, gaps):
                trims[tip] = _trim_plan(task, view, decision, asked_at_ms)

    def _within_share_groups(self, view: PartitionView, decision: TrimDecision) -> TrimDecision:
        """Limit a trim by the share groups, which are read only if there is a trim."""
        if decision.offset is None:
            return decision
        start = self._share_groups.start_of(view.topic_id_partition)
        return limit_by_share_groups(view, decision, start)

    def _trim(self, trims: Mapping[TopicIdPartition, TrimPlan]) -> None:
        """Carry out the trims. If they fail, the reports stay valid; the next cycle plans again."""
        try:
            self._trimmer.trim(trims)
        except RetriableError as error:
            if self._log_once.changed(Trimmer, error.message):
                what = "cannot trim: the next cycle plans the trims again"
                _log.warning(LogLine(what, partitions=len(trims), error=error))
        else:
            self._log_once.clear(Trimmer)


def _merge_failure(
    task: PartitionTask, view: PartitionView, decided: Plan
) -> AttemptFailure | None:
    """Return why the last attempts to merge failed, or why merges leave out a stored segment."""
    if decided.merge is not None and task.merging.failure is not None:
        return task.merging.failure
    ids = (part.metadata.segment_id.id for part in view.stored)
    return next((task.unsupported[each] for each in ids if each in task.unsupported), None)


def _log_waiting(task: PartitionTask, error: TieredStorageError) -> None:
    what = "partition waits"
    level = task.log_level(_VIEW, what, error)
    _log.log(level, LogLine(what, topic_partition=task.topic_id_partition, error=error))


def _waiting(task: PartitionTask, problem: str) -> PartitionReport:
    tip = task.topic_id_partition
    return waiting_report(tip, task.leader_epoch, is_claimed=task.leads, problem=problem)


def _trim_plan(
    task: PartitionTask, view: PartitionView, decision: TrimDecision, planned_at_ms: int
) -> TrimPlan:
    assert decision.offset is not None
    return TrimPlan(
        task=task,
        offset=decision.offset,
        lineage=view.lineage,
        rule=decision.rule,
        planned_at_ms=planned_at_ms,
        is_stored=decision.offset <= view.covered_end_offset,
    )
