"""Totals the stored segments and the findings of each topic. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from spark_tools.audit.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTotals:
    """Represents a topic's finished segments and the recorded bytes of all their objects.

    An object whose length is not recorded counts as 0 bytes.
    """

    topic: str
    partitions_count: int
    segments_count: int
    stored_bytes: int
    findings_count: int


class TotalsByTopic:
    """Adds up segments one at a time. Memory: the partitions' names. Not thread-safe."""

    def __init__(self) -> None:
        self._partitions: defaultdict[str, set[object]] = defaultdict(set)
        self._counts: Counter[str] = Counter()
        self._sizes: Counter[str] = Counter()

    def add(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Add a segment if it is finished; ignore it otherwise."""
        if metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            return
        topic = metadata.topic_id_partition.topic
        self._partitions[topic].add(metadata.topic_id_partition)
        self._counts[topic] += 1
        self._sizes[topic] += sum(stored.length_bytes or 0 for stored in metadata.objects)

    def totals(self, findings: Sequence[Finding]) -> tuple[TopicTotals, ...]:
        """Return the totals by topic, the largest first."""
        found = Counter(each.topic for each in findings if each.topic)
        totals = [
            TopicTotals(
                topic=topic,
                partitions_count=len(self._partitions[topic]),
                segments_count=self._counts[topic],
                stored_bytes=self._sizes[topic],
                findings_count=found[topic],
            )
            for topic in {*self._partitions, *found}
        ]
        return tuple(sorted(totals, key=lambda each: (-each.stored_bytes, each.topic)))
