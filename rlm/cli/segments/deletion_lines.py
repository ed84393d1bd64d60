"""Formats what `rlm segments delete` deletes or keeps. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from rlm.cli.invocation.amounts import size_text
from rlm.cli.segments.segment_lines import segment_identity
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.operator.streamed_deletion import DeletionState, SegmentDeletion
from rlm.status.document_parts import OFFSET_RANGE, PARTITION, Json
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import id_to_text

_COLUMNS = (
    TextColumn(name="partition", is_heading=True),
    TextColumn(name="segment"),
    TextColumn(name="offsets"),
    TextColumn(name="size", is_number=True),
    TextColumn(name="state"),
)
_STATE_TEXTS = {
    DeletionState.ONLY_COPY: "only copy, stays",
    DeletionState.TO_DELETE: "to delete",
    DeletionState.DELETED: "deleted",
    DeletionState.DEAD_LETTERED: "in `rlm dlq list`",
}
_STATES = ", ".join(f"`{each.value}`" for each in DeletionState)
_DELETED_SEGMENT = JsonShape(
    name="SegmentDeletion",
    meaning="A streamed segment that the command deletes or keeps.",
    fields={
        **PARTITION,
        "id": JsonField(JsonKind.ID, "The segment's id."),
        "start_offset": JsonField(JsonKind.OFFSET, "Its first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after its last one."),
        "size_bytes": JsonField(JsonKind.BYTES, "Size of its log."),
        "state": JsonField(JsonKind.TEXT, f"One of {_STATES}."),
        "to_copy": JsonField(
            OFFSET_RANGE,
            "Offsets that no other segment contained when the command started. Managers copy them "
            "first.",
            is_list=True,
        ),
        "only_copy": JsonField(
            OFFSET_RANGE,
            "Offsets that are nowhere else. If there are any, the segment stays.",
            is_list=True,
        ),
    },
)
DELETION_DOCUMENT = JsonShape(
    name="SegmentDeletions",
    meaning="The streamed segments of the topic or partition.",
    fields={"segments": JsonField(_DELETED_SEGMENT, "The segments.", is_list=True)},
)


def deletions_json(rows: Iterable[SegmentDeletion]) -> str:
    """Return the rows as a SegmentDeletions document."""
    return json.dumps({"segments": [_as_json(row) for row in rows]}, indent=2)


def deletion_lines(rows: Sequence[SegmentDeletion], *, width: int | None) -> Iterator[str]:
    """Yield a line for each segment.

    Below it, list the offsets that prevent or delay its deletion.
    """
    if not rows:
        yield "no streamed segments"
    yield from table_lines(_COLUMNS, map(_row, rows), width=width)


def _row(row: SegmentDeletion) -> TextRow:
    metadata, tip = row.segment.metadata, row.partition
    below: Sequence[str] = ()
    if row.state is DeletionState.ONLY_COPY:
        below = [f"    nowhere else: {each}" for each in row.segment.only_here]
    elif row.state is DeletionState.TO_DELETE:
        below = [f"    copied first: {each}" for each in row.segment.to_copy]
    return TextRow(
        cells=(
            f"{tip.topic}:{tip.partition}",
            id_to_text(metadata.segment_id.id),
            str(metadata.offsets),
            size_text(metadata.segment_size_bytes),
            _STATE_TEXTS[row.state],
        ),
        below=below,
    )


def _as_json(row: SegmentDeletion) -> Json:
    metadata, tip = row.segment.metadata, row.partition
    return {
        **segment_identity(tip, metadata),
        "size_bytes": metadata.segment_size_bytes,
        "state": row.state.value,
        "to_copy": [asdict(each) for each in row.segment.to_copy],
        "only_copy": [asdict(each) for each in row.segment.only_here],
    }
