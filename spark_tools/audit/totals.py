"""What each topic holds in the store, and what was found about it. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from spark_tools.audit.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTotals:
    """Finished segments and their bytes, objects included that go with the log's."""

    topic: str
    partitions_count: int
    segments_count: int
    stored_bytes: int
    findings_count: int


def topic_totals(
    segments: Iterable[RemoteLogSegmentMetadata], findings: Sequence[Finding]
) -> tuple[TopicTotals, ...]:
    """By topic, the largest first."""
    partitions: defaultdict[str, set[object]] = defaultdict(set)
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for metadata in segments:
        if metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            continue
        topic = metadata.topic_id_partition.topic
        partitions[topic].add(metadata.topic_id_partition)
        counts[topic] += 1
        sizes[topic] += sum(stored.length_bytes or 0 for stored in metadata.objects)
    found = Counter(each.topic for each in findings if each.topic)
    totals = [
        TopicTotals(
            topic=topic,
            partitions_count=len(partitions[topic]),
            segments_count=counts[topic],
            stored_bytes=sizes[topic],
            findings_count=found[topic],
        )
        for topic in {*partitions, *found}
    ]
    return tuple(sorted(totals, key=lambda each: (-each.stored_bytes, each.topic)))
