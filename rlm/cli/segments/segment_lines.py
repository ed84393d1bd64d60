"""Formats stored segments for `rlm segments list` as they are read, to limit memory. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rlm.cli.invocation.amounts import iso_time, size_text
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.status.document_parts import PARTITION, STORED_OBJECT, Json
from rlmm.spi import SegmentRecord
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, short_keys

STATE_NAMES = {
    SegmentState.COPY_SEGMENT_STARTED: "copying",
    SegmentState.COPY_SEGMENT_FINISHED: "finished",
    SegmentState.DELETE_SEGMENT_STARTED: "deleting",
    SegmentState.DELETE_SEGMENT_FINISHED: "deleted",
}
"""The names of Kafka's states that people read and type."""

_LEADER_EPOCH = JsonShape(
    name="LeaderEpoch",
    meaning="Where a leader epoch begins in a segment.",
    fields={
        "epoch": JsonField(JsonKind.COUNT, "The epoch."),
        "start_offset": JsonField(JsonKind.OFFSET, "Its first offset in the segment."),
    },
)
_SEGMENT = JsonShape(
    name="StoredSegment",
    meaning="A segment that the metadata topic records.",
    fields={
        **PARTITION,
        "id": JsonField(JsonKind.ID, "The segment's id."),
        "start_offset": JsonField(JsonKind.OFFSET, "Its first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after its last one."),
        "state": JsonField(
            JsonKind.TEXT, f"One of {', '.join(f'`{each.name}`' for each in SegmentState)}."
        ),
        "state_since_ms": JsonField(JsonKind.TIME, "When its state last changed."),
        "size_bytes": JsonField(JsonKind.BYTES, "Size of its log."),
        "max_timestamp_ms": JsonField(JsonKind.TIME, "Timestamp of its newest record."),
        "leader_epochs": JsonField(_LEADER_EPOCH, "Its leader epochs.", is_list=True),
        "layout": JsonField(JsonKind.TEXT, "How it is laid out as objects, such as `raw`."),
        "dead_lettered": JsonField(
            JsonKind.FLAG, "Whether a dead letter says that its deletion failed."
        ),
        "objects": JsonField(STORED_OBJECT, "Its objects.", is_list=True),
    },
)
_TOTALS = JsonShape(
    name="SegmentTotals",
    meaning="The sums over the listed segments.",
    fields={
        "segments": JsonField(JsonKind.COUNT, "Number of segments."),
        "size_bytes": JsonField(JsonKind.BYTES, "Size of their logs."),
        "by_state": JsonField(JsonKind.MAP, "Number of segments, by the name of their state."),
    },
)
SEGMENTS_DOCUMENT = JsonShape(
    name="Segments",
    meaning="The selected segments.",
    fields={
        "segments": JsonField(_SEGMENT, "The segments.", is_list=True),
        "totals": JsonField(_TOTALS, "The sums over them."),
    },
)

_DATE_CHARS = len("2030-01-31")
_COLUMNS = (
    TextColumn(name="partition", is_heading=True),
    TextColumn(name="segment"),
    TextColumn(name="offsets"),
    TextColumn(name="state"),
    TextColumn(name="size", is_number=True, is_movable=True),
    TextColumn(name="newest", is_movable=True),
)
_WIDE_COLUMNS = (
    *_COLUMNS,
    TextColumn(name="epochs"),
    TextColumn(name="layout"),
    TextColumn(name="objects"),
)


class SegmentTotals:
    """Represents the number and size of the listed segments. Not thread-safe."""

    def __init__(self) -> None:
        self._size_bytes = 0
        self._counts: Counter[SegmentState] = Counter()

    def add(self, metadata_state: SegmentState, size_bytes: int) -> None:
        """Count one segment."""
        self._counts[metadata_state] += 1
        self._size_bytes += size_bytes

    def line(self) -> str:
        """Return the totals for people."""
        count = self._counts.total()
        if not count:
            return "no segments"
        by_state = ", ".join(
            f"{self._counts[state]} {name}"
            for state, name in STATE_NAMES.items()
            if self._counts[state]
        )
        noun = "segment" if count == 1 else "segments"
        return f"{count} {noun}, {size_text(self._size_bytes)}: {by_state}"

    def to_json(self) -> Json:
        return {
            "segments": self._counts.total(),
            "size_bytes": self._size_bytes,
            "by_state": {state.name: self._counts[state] for state in SegmentState},
        }


def _offsets_text(metadata: RemoteLogSegmentMetadata) -> str:
    offsets = metadata.offsets
    return f"[{offsets.start_offset}, open)" if metadata.is_open else str(offsets)


def segment_lines(
    records: Iterable[tuple[TopicIdPartition, SegmentRecord]], *, wide: bool, width: int | None
) -> Iterator[str]:
    """Yield a table with a line for each partition and each of its segments, and the totals.

    The wide table has one line of any width for each segment.
    """
    totals = SegmentTotals()

    def rows() -> Iterator[TextRow]:
        for tip, record in records:
            totals.add(record.metadata.state, record.metadata.segment_size_bytes)
            cells = _cells(tip, record.metadata, wide=wide)
            yield TextRow(cells=cells if wide else cells[: len(_COLUMNS)])

    if wide:
        yield from table_lines(_WIDE_COLUMNS, rows(), width=None)
    else:
        yield from table_lines(_COLUMNS, rows(), width=width)
    yield totals.line()


def _cells(
    tip: TopicIdPartition, metadata: RemoteLogSegmentMetadata, *, wide: bool
) -> Sequence[str]:
    newest = iso_time(metadata.max_timestamp_ms)
    date = newest if newest.startswith("@") else newest[:_DATE_CHARS]
    return (
        f"{tip.topic}:{tip.partition}",
        id_to_text(metadata.segment_id.id),
        _offsets_text(metadata),
        STATE_NAMES[metadata.state],
        size_text(metadata.segment_size_bytes),
        newest if wide else date,
        _epochs_text(metadata.segment_leader_epochs),
        metadata.layout,
        " ".join(short_keys(metadata.object_keys)),
    )


def segments_json(records: Iterable[tuple[TopicIdPartition, SegmentRecord]]) -> Iterator[str]:
    """Yield the parts of one JSON document: the segments, then the totals."""
    totals = SegmentTotals()
    before = '{\n"segments": ['
    for tip, record in records:
        totals.add(record.metadata.state, record.metadata.segment_size_bytes)
        yield f"{before}\n{json.dumps(_segment_as_json(tip, record))}"
        before = ","
    yield f'{before if before != "," else ""}\n],\n"totals": {json.dumps(totals.to_json())}\n}}'


def _epochs_text(lineage: Lineage) -> str:
    first, last = lineage.entries[0].epoch, lineage.entries[-1].epoch
    return str(first) if first == last else f"{first}-{last}"


def segment_identity(tip: TopicIdPartition, metadata: RemoteLogSegmentMetadata) -> Json:
    """Return the fields that identify a segment in the documents of `rlm segments`."""
    return {
        "topic": tip.topic,
        "topic_id": id_to_text(tip.topic_id),
        "partition": tip.partition,
        "id": id_to_text(metadata.segment_id.id),
        "start_offset": metadata.offsets.start_offset,
        "end_offset": metadata.offsets.end_offset,
    }


def _segment_as_json(tip: TopicIdPartition, record: SegmentRecord) -> Json:
    metadata = record.metadata
    return {
        **segment_identity(tip, metadata),
        "state": metadata.state.name,
        "state_since_ms": record.changed_ms,
        "size_bytes": metadata.segment_size_bytes,
        "max_timestamp_ms": metadata.max_timestamp_ms,
        "leader_epochs": [
            {"epoch": each.epoch, "start_offset": each.start_offset}
            for each in metadata.segment_leader_epochs.entries
        ],
        "layout": metadata.layout,
        "dead_lettered": record.is_dead_lettered,
        "objects": [
            {"key": each.key, "bytes": each.length_bytes, "crc32c": each.crc32c}
            for each in metadata.objects
        ],
    }
