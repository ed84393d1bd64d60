"""Trims local logs in a fixed order of effects.

    LocalLogTrimmed accepted (it carries the whole lineage)
    → broker confirms the lead in the claim's epoch → plan recent → own claim still the newest
    → records of the plan still stored → DeleteRecords, one request for many partitions

**Data loss:** DeleteRecords carries no leader epoch, so after a suspension, a process could delete
records that an unclean leader wrote in the meantime. Therefore the trimmer sends DeleteRecords only
to its own broker, right after that broker answers an epoch-checked request. It carries out only
recent plans.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from rlm.broker.spi import RecordDeletion
from rlm.policy.anomalies import undamaged
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.state.log_starts import LogStart
from rsm.segment.coverage import covered_end, stored_ranges
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState, Writer

_log = logging.getLogger(__name__)

_TRIM = "trim"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPlan:
    """Represents a trim decided at `planned_at_ms` (monotonic), with its partition and rule.

    If `is_stored`, all records to trim must still be stored. If not, the trim sheds or expires
    records.
    """

    task: PartitionTask
    offset: int
    lineage: Lineage
    rule: str
    planned_at_ms: int
    is_stored: bool

    @property
    def writer(self) -> Writer:
        return self.task.lead.writer


class Trimmer:
    """Trims the local logs of the partitions that one broker leads. Not thread-safe."""

    def __init__(self, ports: Ports, *, plan_max_age_ms: int) -> None:
        self._broker = ports.broker
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._plan_max_age_ms = plan_max_age_ms

    def is_due(self, plans: Mapping[TopicIdPartition, TrimPlan]) -> bool:
        """Return whether the first plan, the oldest, is older than half of the maximum age."""
        first = next(iter(plans.values()), None)
        if first is None:
            return False
        return 2 * (self._clock.monotonic_ms() - first.planned_at_ms) > self._plan_max_age_ms

    def trim(self, plans: Mapping[TopicIdPartition, TrimPlan]) -> Mapping[TopicIdPartition, int]:
        """Carry out trims; return the new local start offset of each trimmed partition.

        Skips a partition that fails a check; the next cycle plans it again. Raises RetriableError
        if the broker does not answer.
        """
        trimmed: dict[TopicIdPartition, int] = {}
        recorded: dict[TopicIdPartition, TrimPlan] = {}
        for tip, plan in plans.items():
            if self._record(tip, plan):
                recorded[tip] = plan
            if self.is_due(recorded):
                trimmed.update(self._cut(recorded))
                recorded.clear()
        trimmed.update(self._cut(recorded))
        return trimmed

    def _cut(self, recorded: Mapping[TopicIdPartition, TrimPlan]) -> Mapping[TopicIdPartition, int]:
        confirmed = self._confirm(recorded)
        if not confirmed:
            return {}
        results = self._broker.delete_records(
            {
                tip: RecordDeletion(
                    before_offset=plan.offset, leader_epoch=plan.writer.leader_epoch
                )
                for tip, plan in confirmed.items()
            }
        )
        for tip, error in results.failed.items():
            _log_failure("cannot trim", confirmed[tip].task, error)
        for tip, local_start_offset in results.succeeded.items():
            confirmed[tip].task.log.clear(_TRIM)
            _log.info(
                LogLine(
                    "trimmed local log",
                    topic_partition=tip,
                    offset=confirmed[tip].offset,
                    local_start_offset=local_start_offset,
                    rule=confirmed[tip].rule,
                )
            )
        return results.succeeded

    def _record(self, tip: TopicIdPartition, plan: TrimPlan) -> bool:
        """Record the trim and the whole lineage before the broker deletes anything."""
        state = self._metadata.partition_state(tip)
        epoch = plan.writer.leader_epoch
        own = (trim.offset for trim in state.trims if trim.leader_epoch == epoch)
        trim = LogStart(max((plan.offset, *own)), epoch)
        if trim in state.trims and state.lineage == plan.lineage:
            return True
        try:
            result = self._metadata.publish(
                LocalLogTrimmed(
                    event_id=self._new_id(),
                    topic_id_partition=tip,
                    writer=plan.writer,
                    offset=trim.offset,
                    lineage=plan.lineage,
                )
            )
        except RetriableError as error:
            _warn("cannot record a trim", plan.task, error.message)
            return False
        if not result.accepted:
            _warn("the metadata refused a trim", plan.task, str(result.refusal))
        return result.accepted

    def _confirm(
        self, plans: Mapping[TopicIdPartition, TrimPlan]
    ) -> Mapping[TopicIdPartition, TrimPlan]:
        """Return the plans that are still valid, right before the deletion."""
        if not plans:
            return {}
        age_ms = self._clock.monotonic_ms() - min(p.planned_at_ms for p in plans.values())
        left_ms = max(self._plan_max_age_ms - age_ms, 0)
        read = self._metadata.those_caught_up(plans, timeout_ms=left_ms // 2)
        offsets = self._broker.offsets({t: p.writer.leader_epoch for t, p in plans.items()})
        now_ms = self._clock.monotonic_ms()
        given_up = "gave up a trim"
        confirmed = {}
        for tip, plan in plans.items():
            if tip in offsets.failed:
                _log_failure(given_up, plan.task, offsets.failed[tip])
            elif tip not in read:
                _warn(given_up, plan.task, "the metadata is not read to its end")
            elif plan.offset > offsets.succeeded[tip].high_watermark:
                _warn(given_up, plan.task, "the offset is above the high watermark")
            elif now_ms - plan.planned_at_ms > self._plan_max_age_ms:
                _warn(given_up, plan.task, "the plan is too old")
            elif self._metadata.partition_state(tip).owner != plan.writer:
                _warn(given_up, plan.task, "another claim is newer")
            elif not self._is_still_stored(tip, plan, offsets.succeeded[tip].log_start_offset):
                _warn(given_up, plan.task, "some records are no longer stored undamaged")
            else:
                confirmed[tip] = plan
        return confirmed

    def _is_still_stored(
        self, tip: TopicIdPartition, plan: TrimPlan, local_start_offset: int
    ) -> bool:
        """Return whether the records to trim are still stored, or need not be.

        The metadata has been read to its end after the trim's record. Records below the log start
        or the local start need not be stored. A damaged segment does not count as stored.
        """
        state = self._metadata.partition_state(tip)
        start_offset = max(local_start_offset, state.log_start_offset or 0)
        if not plan.is_stored or start_offset >= plan.offset:
            return True
        records = self._metadata.list_remote_log_segments(
            tip, states=(SegmentState.COPY_SEGMENT_FINISHED,), from_offset=start_offset
        )
        sound = undamaged(state, (record.metadata for record in records))
        return covered_end(stored_ranges(plan.lineage, sound), start_offset) >= plan.offset


def _log_failure(what: str, task: PartitionTask, error: TieredStorageError) -> None:
    level = task.log_level(_TRIM, what, error)
    _log.log(level, LogLine(what, topic_partition=task.topic_id_partition, reason=error))


def _warn(what: str, task: PartitionTask, reason: str) -> None:
    """Log once, until the partition is trimmed or the reason changes."""
    if task.log.changed(_TRIM, f"{what}: {reason}"):
        _log.warning(LogLine(what, topic_partition=task.topic_id_partition, reason=reason))
