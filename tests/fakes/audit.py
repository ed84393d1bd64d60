"""Checks every effect right before it happens, and records the forbidden ones.

The audit ignores a DeleteRecords that the broker refuses, because that does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlm.broker.spi import RecordDeletion
from rlm.policy.leftovers import has_never_finished
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.gaps import GapsRecorded
from rlmm.events.policy import OutagePolicy, topic_policy
from rlmm.events.segment import SegmentEvent
from rlmm.spi import SegmentRecord
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.gaps import GapReason
from rsm.layout.keys import ObjectKeys
from rsm.segment.coverage import stored_ranges
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange, missing
from tests.fakes.invariants import first_unreadable, is_whole
from tests.fakes.metadata import FreshMetadata

if TYPE_CHECKING:
    from tests.fakes.process import Process
    from tests.fakes.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class _Confirmed:
    """Represents what a process could know of a partition when it asked its broker for offsets.

    A trim may follow. Between the two, other brokers may be elected: no check prevents that.
    """

    owner: Process | None
    recorded_offset: int
    log_start_offset: int


class Audit:
    """Checks the order of effects and ownership by the metadata topic's content at that moment.

    `violations` describes the forbidden effects. `asks_in_job`: whether a process asks because of a
    copy, which confirms nothing for a trim. `shed` are the ranges that were shed.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._claimed_by: dict[Writer, Process] = {}
        self._confirmed: dict[Process, dict[TopicIdPartition, _Confirmed]] = {}
        self.violations: list[str] = []
        self.shed: dict[TopicIdPartition, list[OffsetRange]] = {}
        self.asks_in_job: Callable[[Process], bool] = lambda _: False

    def witness(self, process: Process, name: str, subject: object) -> None:
        """Check one act of one process.

        With a request for offsets, a process checks who owns its partitions.
        """
        if name == "offsets" and not self.asks_in_job(process):
            self._confirmed[process] = {
                tip: self._known_to(process, tip) for tip in self._world.tips
            }
        elif isinstance(subject, LeadershipClaimed):
            self._claimed_by[subject.writer] = process
        elif isinstance(subject, SegmentEvent):
            self._check_event(subject)
        elif isinstance(subject, GapsRecorded):
            self._check_gaps(subject)
        elif isinstance(subject, Mapping):
            for tip, deletion in subject.items():
                self._check_trim(process, tip, deletion)
        elif name == "written" and isinstance(subject, str):
            self._check_write(subject)
        elif name.startswith("delete") and isinstance(subject, str):
            self._check_delete(process, subject)

    def note_late(self, process: Process, event: object) -> None:
        """Note who made a claim whose record arrives late, after its process got no answer."""
        if isinstance(event, LeadershipClaimed):
            self._claimed_by[event.writer] = process

    def _known_to(self, process: Process, tip: TopicIdPartition) -> _Confirmed:
        known = process.ports.metadata
        assert isinstance(known, FreshMetadata)
        state = known.known_state(tip)
        return _Confirmed(
            owner=None if state.owner is None else self._claimed_by.get(state.owner),
            recorded_offset=max(state.trimmed_offset or 0, state.log_start_offset or 0),
            log_start_offset=state.log_start_offset or 0,
        )

    def _check_event(self, event: SegmentEvent) -> None:
        """Check that no finished copy above the log start is deleted, with four exceptions.

        If the user requested its removal, all readable records have to be local. If somebody
        damaged it, the user requested the deletion of streamed segments, or segments are merged,
        then other finished segments must have its records in whole objects.
        """
        metadata = event.metadata
        if metadata.state is not SegmentState.DELETE_SEGMENT_STARTED:
            return
        if self._world.leader(metadata.topic_id_partition).deleted:
            return
        record = self._world.metadata.segment(metadata.segment_id)
        finished = record and record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        expected = event.expected_state is SegmentState.COPY_SEGMENT_FINISHED
        state = self._world.state(metadata.topic_id_partition)
        log_start = state.log_start_offset or 0
        above = metadata.offsets.end_offset > log_start
        policy = topic_policy(self._world.metadata, metadata.topic_id_partition.topic_id)
        local_start = self._world.leader(metadata.topic_id_partition).log_start_offset
        removed = policy is not None and policy.delete_remote and log_start >= local_start
        removed = removed or self._is_replaced(metadata)
        if finished and expected and above and not removed and state.owner == metadata.writer:
            self._add(f"deletes the finished copy {metadata.offsets} above the log start")

    def _is_replaced(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """Return whether the segment may be replaced, and no readable record is lost with it."""
        is_damaged = any(each.key in self._world.damaged_objects for each in metadata.objects)
        is_unwanted = metadata.segment_id.id in self._world.unwanted
        if not is_damaged and not is_unwanted and not self._world.settings.limits.merges_streams:
            return False
        tip = metadata.topic_id_partition
        state = self._world.state(tip)
        finished = self._world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
        others = [
            record.metadata
            for record in finished
            if record.metadata.segment_id != metadata.segment_id
            and is_whole(self._world, record.metadata)
        ]
        for part in stored_ranges(state.lineage, (r.metadata for r in finished)):
            if part.metadata.segment_id == metadata.segment_id:
                gaps = [g.offsets for g in state.gaps if g.reason is GapReason.ACCEPTED_LOSS]
                start_offset = max(part.offsets.start_offset, state.log_start_offset or 0)
                left = replace(
                    part.offsets, start_offset=min(start_offset, part.offsets.end_offset)
                )
                whole = (each.offsets for each in stored_ranges(state.lineage, others))
                return not missing(sorted((*whole, *gaps)), left)
        return True  # the log's lineage no longer has the segment

    def _check_gaps(self, event: GapsRecorded) -> None:
        """Check that nothing is shed of a topic whose outage policy is hold."""
        tip = event.topic_id_partition
        policy = topic_policy(self._world.metadata, tip.topic_id)
        shed = [gap.offsets for gap in event.gaps if gap.reason is GapReason.SHED]
        self.shed.setdefault(tip, []).extend(shed)
        if shed and (policy is None or policy.outage_policy is OutagePolicy.HOLD):
            self._add(f"gives up records of {tip}, whose outage policy is hold")
        for gap in event.gaps:
            if gap.reason is GapReason.ACCEPTED_LOSS:
                self._check_accepted(tip, gap.offsets)

    def _check_accepted(self, tip: TopicIdPartition, offsets: OffsetRange) -> None:
        """Check that an operator accepted the loss, or that it is in a gap already."""
        state = self._world.state(tip)
        accepted = {a.segment for a in state.anomalies if a.kind is AnomalyKind.LOSS_ACCEPTED}
        lost = (
            record.metadata.offsets
            for record in self._world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
            if record.metadata.segment_id.id in accepted
            and not is_whole(self._world, record.metadata)
        )
        if missing(sorted((*lost, *(gap.offsets for gap in state.gaps))), offsets):
            self._add(f"gives up {offsets} of {tip}, which nobody has accepted")

    def _check_trim(
        self, process: Process, tip: TopicIdPartition, deletion: RecordDeletion
    ) -> None:
        """Check a trim. An unclean election may have lowered the log start since the decision."""
        offset = deletion.before_offset
        confirmed = self._confirmed.get(process, {}).get(tip)
        if confirmed is None or confirmed.owner is not process:
            self._add(f"trims {tip} to {offset} without the newest claim")
        if confirmed is None or offset > confirmed.recorded_offset:
            self._add(f"trims {tip} to {offset}, which is not recorded")
        log_start = self._world.state(tip).log_start_offset or 0
        if confirmed is not None:
            log_start = max(log_start, confirmed.log_start_offset)
        group = self._world.share_groups.started.get(tip)
        if group is not None and max(group.offset, log_start) < offset:
            self._add(f"trims {tip} to {offset}, a share group has come to {group.offset}")
        replica = self._world.hosts[process.ports.broker.node_id].replicas[tip]
        start_offset = max(replica.log_start_offset, log_start)
        if start_offset < offset:
            going = OffsetRange(start_offset=start_offset, end_offset=offset)
            if (problem := first_unreadable(self._world, tip, going, replica)) is not None:
                self._add(f"trims {tip} to {offset}: {problem}")

    def _check_write(self, name: str) -> None:
        record = self._record_of(name)
        if record is None:
            self._add(f"writes {name}, which no event names")

    def _check_delete(self, process: Process, name: str) -> None:
        record = self._record_of(name)
        state = None if record is None else record.metadata.state
        if state is SegmentState.COPY_SEGMENT_FINISHED:
            self._add(f"deletes {name} of a finished copy")
        if record is not None and self._is_leased(record):
            self._add(f"deletes {name}, which is leased")
        if record is not None and state is SegmentState.COPY_SEGMENT_STARTED:
            own = record.metadata.writer.incarnation == process.incarnation
            if not own:
                self._add(f"deletes {name} of a copy that another process has begun")

    def _is_leased(self, record: SegmentRecord) -> bool:
        """Return whether a lease was taken before the deletion began; for finished copies only."""
        if record.changed_at is None or has_never_finished(record):
            return False
        now_ms = self._world.clock.wall_ms()
        return any(
            lease.topic_id_partition == record.metadata.topic_id_partition
            and lease.offsets.overlaps(record.metadata.offsets)
            and lease.at_offset < record.changed_at.offset
            and now_ms < lease.expires_ms
            for lease in self._world.leases
        )

    def _record_of(self, name: str) -> SegmentRecord | None:
        key = ObjectKeys().parse(name)
        return None if key is None else self._world.metadata.segment(key.segment_id)

    def _add(self, violation: str) -> None:
        self.violations.append(violation)
