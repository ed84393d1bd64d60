"""What is still to be exported, given what was and what is stored. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.ranges import OffsetRange
from spark_tools.reading.plan import Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRange:
    """A line of the manifest: offsets of a partition that are in files whole."""

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    end_offset: int
    records_count: int
    path: str


MANIFEST_DDL = (
    "topic string, topic_id string, partition int, start_offset bigint, end_offset bigint, "
    "records_count bigint, path string"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """Offsets to be exported. The path is that of its start: done again, it replaces itself."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange

    @property
    def path(self) -> str:
        """Below the output's directory; topic and partition are columns of who reads it."""
        tip = self.topic_id_partition
        topic = f"topic={tip.topic}/topic_id={id_to_text(tip.topic_id)}"
        return f"data/{topic}/partition={tip.partition}/from={self.offsets.start_offset:020d}"

    def exported(self, records_count: int) -> ExportedRange:
        """Once its files are whole."""
        tip = self.topic_id_partition
        return ExportedRange(
            topic=tip.topic,
            topic_id=id_to_text(tip.topic_id),
            partition=tip.partition,
            start_offset=self.offsets.start_offset,
            end_offset=self.offsets.end_offset,
            records_count=records_count,
            path=self.path,
        )


def remaining(pieces: Iterable[Piece], done: Sequence[ExportedRange]) -> list[PlannedRange]:
    """One range per partition: what is planned, less what is below the end of what was exported."""
    bounds: dict[TopicIdPartition, list[int]] = {}
    for piece in pieces:
        tip = piece.topic_id_partition
        known = bounds.setdefault(tip, [piece.offsets.start_offset, piece.offsets.end_offset])
        known[1] = max(known[1], piece.offsets.end_offset)
    planned = []
    for tip, (first_offset, end_offset) in sorted(bounds.items()):
        start_offset = max([first_offset, *_ends(tip, done)])
        if start_offset < end_offset:
            offsets = OffsetRange(start_offset=start_offset, end_offset=end_offset)
            planned.append(PlannedRange(topic_id_partition=tip, offsets=offsets))
    return planned


def _ends(tip: TopicIdPartition, done: Iterable[ExportedRange]) -> list[int]:
    own = (id_to_text(tip.topic_id), tip.partition)
    return [each.end_offset for each in done if (each.topic_id, each.partition) == own]
