"""Plans reads of partitions from an open metadata snapshot: takes leases, and makes tasks."""

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
    """The stored partitions, the brokers' logs, and the tasks."""

    stored: list[StoredPartition]
    local: Mapping[TopicIdPartition, OffsetRange]
    tasks: list[Task]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLeases:
    """The holder name of leases, and the receiver of each lease that was taken.

    `keeps` as in LeaseTerms: whether ranges of earlier plans are still read.
    """

    holder: str
    taken: Callable[[ReadLeaseTaken], None]
    keeps: bool = True


class Planner:
    """Plans reads of some partitions from an open metadata snapshot. Not thread-safe."""

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
        """Return all current tasks; their segments stay stored for `lease_ms`.

        Raises NotFoundError as `plan` does, and RetriableError if a lease is refused.
        """
        return self._plan(options).tasks

    def summary(self, options: ReadOptions) -> tuple[PartitionSummary, ...]:
        """Return the counts of what `tasks` would return now, with the same errors."""
        plan = self._plan(options)
        return summarized(plan.stored, plan.tasks, options, plan.local)

    def batch(self, options: ReadOptions) -> list[Task]:
        """Return `tasks` for a query that reads once, and log one line.

        Raises InvalidConfigError for a named topic that was never tiered. Logs a topic without
        stored segments.
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

        The metadata is read after the brokers answer. So it contains every segment that was trimmed
        before the answers, and later trims do not matter.
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
        """Add new partitions. If a topic was created again, its known partitions keep the old id.

        Raises InvalidConfigError if the cluster does not answer or a topic no longer exists.
        """
        self.partitions = with_added(self.partitions, find_chosen(self._client, options))

    def partition(self, tip: TopicIdPartition) -> StoredPartition:
        """Return a partition's state and segments, as of the metadata that was read."""
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
            advice="Tier it by `rlm topic set`, or name the metadata topic that has its policy",
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
    """Return the offsets that the options may select, without knowing the partition's log."""
    start_offset = max(0, options.starting.of(tip.topic, tip.partition))
    end_offset = options.ending.of(tip.topic, tip.partition)
    end_offset = end_offset if end_offset >= 0 else _MAX_OFFSET
    return OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))
