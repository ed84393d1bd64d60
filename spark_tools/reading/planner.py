"""Plans reads of partitions with an open metadata snapshot: takes leases, and makes tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rlmm.events.read_lease import ReadLeaseTaken
from rsm.segment.batches.aborted import Isolation
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import OffsetRange
from spark_tools.cluster_topics import find_local_offsets
from spark_tools.reading.chosen_partitions import find_chosen, with_added
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Piece, SegmentPiece, Task, joined, plan, split
from spark_tools.reading.summary import PartitionSummary, in_one_line, summarized
from spark_tools.snapshot import LeaseTerms, MetadataSnapshot
from spark_tools.stored_partition import StoredPartition

_log = logging.getLogger(__name__)
_MAX_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedRead:
    """Represents a plan: the stored partitions, the brokers' logs, and the tasks."""

    stored: list[StoredPartition]
    local: Mapping[TopicIdPartition, OffsetRange]
    tasks: list[Task]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLeases:
    """Represents the holder of a plan's leases. `taken` receives each lease that the plan takes.

    `keeps` is that of LeaseTerms: True if tasks may still read the ranges of earlier plans.
    """

    holder: str
    taken: Callable[[ReadLeaseTaken], None]
    keeps: bool = True


class Planner:
    """Plans reads of partitions with an open metadata snapshot. Not thread-safe."""

    def __init__(
        self,
        partitions: Sequence[TopicIdPartition],
        metadata: MetadataSnapshot,
        client: Mapping[str, str],
        leases: PlanLeases,
    ) -> None:
        self.partitions = tuple(partitions)
        self._metadata = metadata
        self._client = client
        self._leases = leases

    def tasks(self, options: ReadOptions) -> list[Task]:
        """Return tasks for the current data, and lease the partitions for `lease_ms`.

        Raises NotFoundError as `plan` does. Raises RetriableError if a lease is refused, or if the
        metadata cannot be read in time.
        """
        return self._plan(options).tasks

    def summary(self, options: ReadOptions) -> tuple[PartitionSummary, ...]:
        """Return the counts of what `tasks` would return.

        Leases as `tasks` does, and raises the same errors.
        """
        plan = self._plan(options)
        return summarized(plan.stored, plan.tasks, options, plan.local)

    def batch(self, options: ReadOptions) -> list[Task]:
        """Return `tasks` for a query that reads once, and log a summary of the plan.

        Raises InvalidConfigError for a named topic that was never tiered. Logs each topic that has
        no stored segments.
        """
        plan = self._plan(options)
        by_topic: dict[str, list[StoredPartition]] = {}
        for each in plan.stored:
            by_topic.setdefault(each.topic_id_partition.topic, []).append(each)
        for of_topic in by_topic.values():
            _require_tiered(of_topic, options)
        _log.info(in_one_line(summarized(plan.stored, plan.tasks, options, plan.local)))
        return plan.tasks

    def _plan(self, options: ReadOptions) -> _PlannedRead:
        local = self._local(options)
        stored = self._lease(options)
        pieces = _planned(stored, options, local)
        stored_bytes = sum(p.size_bytes for p in pieces if isinstance(p, SegmentPiece))
        task_bytes = options.task_bytes(stored_bytes)
        tasks = joined(split(pieces, task_bytes), task_bytes if options.parallelism else 0)
        if len(tasks) < options.min_partitions:
            tasks = joined(split(pieces, max(1, stored_bytes // options.min_partitions)), 0)
        return _PlannedRead(stored=stored, local=local, tasks=tasks)

    def _lease(self, options: ReadOptions) -> list[StoredPartition]:
        """Lease the selected partitions for `lease_ms`, then return their state."""
        terms = LeaseTerms(
            holder=self._leases.holder, duration_ms=options.lease_ms, keeps=self._leases.keeps
        )
        found = []
        for tip in self.partitions:
            if options.chooses(tip.topic, tip.partition):
                lease = self._metadata.take_lease(tip, _to_be_leased(tip, options), terms)
                if lease is not None:
                    self._leases.taken(lease)
                found.append(self._metadata.partition(tip))
        return found

    def _local(self, options: ReadOptions) -> Mapping[TopicIdPartition, OffsetRange]:
        """Return the brokers' logs of the partitions that are read beyond the stored end.

        Reads the metadata after the brokers answer. So the metadata contains every segment that was
        trimmed before the answers, and no trim leaves a hole in the plan.
        """
        continued = [
            tip
            for tip in self.partitions
            if options.chooses(tip.topic, tip.partition)
            and options.continues(tip.topic, tip.partition)
        ]
        if not continued:
            return {}
        found = find_local_offsets(
            self._client,
            continued,
            read_committed=options.isolation is Isolation.READ_COMMITTED,
            timeout_ms=options.timeout_ms,
        )
        self._metadata.catch_up(continued)
        return found

    def look_for_new(self, options: ReadOptions) -> None:
        """Add new partitions. Known partitions of a recreated topic keep the old topic id.

        Raises InvalidConfigError if the cluster does not answer or a topic no longer exists.
        """
        self.partitions = with_added(self.partitions, find_chosen(self._client, options))

    def partition(self, tip: TopicIdPartition) -> StoredPartition:
        """Return a partition's state and segments in the metadata as last read."""
        return self._metadata.partition(tip)

    def read_stored(self) -> list[StoredPartition]:
        """Return the current state and segments of each partition. Raises RetriableError."""
        self._metadata.catch_up(self.partitions)
        return [self._metadata.partition(tip) for tip in self.partitions]


def _require_tiered(stored: Sequence[StoredPartition], options: ReadOptions) -> None:
    """Raise InvalidConfigError if the partitions' topic was never tiered; log if it is empty."""
    if any(each.segments for each in stored):
        return
    topic = stored[0].topic_id_partition.topic
    is_tiered = any(each.state.owner is not None for each in stored)
    if not is_tiered and options.pattern is None:
        raise InvalidConfigError(
            "cannot read the topic: it was never tiered",
            topic=topic,
            advice="Run `rlm topic set`, or name the metadata topic that contains its policy",
        )
    _log.info(LogLine("the topic has no stored segments", topic=topic))


def _planned(
    stored: Sequence[StoredPartition],
    options: ReadOptions,
    local: Mapping[TopicIdPartition, OffsetRange],
) -> list[Piece]:
    return [
        piece
        for each in stored
        for piece in plan(each, options, local.get(each.topic_id_partition))
    ]


def _to_be_leased(tip: TopicIdPartition, options: ReadOptions) -> OffsetRange:
    """Return all offsets that the options can select, whatever the partition's log contains."""
    start_offset = max(0, options.starting.of(tip.topic, tip.partition))
    end_offset = options.ending.of(tip.topic, tip.partition)
    end_offset = end_offset if end_offset >= 0 else _MAX_OFFSET
    return OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))
