"""Formats a partition's offload segments (PIP-76), as JSON and as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rlm.cli.invocation.amounts import iso_time
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlmm.state.offload_segments import (
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import id_to_text

_POSITION = JsonShape(
    name="OffloadPosition",
    meaning="A position in a log.",
    fields={
        "ledger_id": JsonField(JsonKind.OFFSET, "Base offset of the local log segment."),
        "entry_id": JsonField(JsonKind.COUNT, "Number of the batch in it, from 0."),
        "offset": JsonField(JsonKind.OFFSET, "First offset of the batch."),
    },
)
OFFLOAD_SEGMENT = JsonShape(
    name="OffloadSegment",
    meaning="An offload segment of a streamed partition.",
    fields={
        "id": JsonField(JsonKind.ID, "The offload segment's id."),
        "status": JsonField(
            JsonKind.TEXT,
            f"One of {', '.join(f'`{each.name.lower()}`' for each in OffloadSegmentStatus)}.",
        ),
        "assigned_ms": JsonField(JsonKind.TIME, "When it was assigned."),
        "offloaded_ms": JsonField(
            JsonKind.TIME, "When it was offloaded; null if it is not.", is_nullable=True
        ),
        "begin": JsonField(_POSITION, "Position of the first batch."),
        "end": JsonField(
            _POSITION,
            "Position after the last batch; null if it is not offloaded. If the log no longer "
            "contains that batch, the ledger id is the offset, and the entry id is 0.",
            is_nullable=True,
        ),
        "driver_metadata": JsonField(
            JsonKind.MAP,
            "What locates the data: `backend`, `prefix`, and the store by Pulsar's names, such as "
            "`bucket`, `region`, `serviceEndpoint` and `storageBasePath`.",
        ),
        "segment_ids": JsonField(JsonKind.ID, "The ids of its stored segments.", is_list=True),
        "objects": JsonField(
            JsonKind.TEXT,
            "Keys of the objects that it may have in the store. Several chunks are one entry, such "
            "as `….log.{00000..00012}`. Empty if an earlier version of `rlm` recorded it.",
            is_list=True,
        ),
    },
)
_SHOWN_MAX_COUNT = 10
_COLUMNS = (
    TextColumn(name="offload segment", is_heading=True),
    TextColumn(name="status"),
    TextColumn(name="time"),
    TextColumn(name="ledger:entry", is_number=True),
    TextColumn(name="offset", is_number=True),
)


def offload_segment_json(record: OffloadSegmentRecord) -> Mapping[str, object]:
    """Return an offload segment as an OffloadSegment document."""
    return {
        "id": id_to_text(record.id),
        "status": record.status.name.lower(),
        "assigned_ms": record.assigned_ms,
        "offloaded_ms": record.offloaded_ms,
        "begin": _position_json(record.begin),
        "end": None if record.end is None else _position_json(record.end),
        "driver_metadata": {each.name: each.value for each in record.driver_metadata},
        "segment_ids": [*map(id_to_text, record.segment_ids)],
        "objects": [*record.objects],
    }


def offload_segment_lines(
    records: Sequence[OffloadSegmentRecord], *, width: int | None
) -> Iterator[str]:
    """Yield the last offload segments of a partition; nothing if there are none."""
    if not records:
        return
    shown = records[-_SHOWN_MAX_COUNT:]
    count = (
        f"{len(records)}"
        if len(shown) == len(records)
        else f"{len(records)}, the last {len(shown)}:"
    )
    yield f"offload segments: {count}"
    yield from table_lines(_COLUMNS, _rows(shown), width=width)


def _rows(records: Sequence[OffloadSegmentRecord]) -> Iterator[TextRow]:
    for record in records:
        name = f"{id_to_text(record.id)}  {record.status.name.lower()}"
        yield _row(name, "assigned", record.assigned_ms, record.begin)
        if record.end is not None and record.offloaded_ms is not None:
            yield _row(name, "offloaded", record.offloaded_ms, record.end)


def _row(name: str, status: str, time_ms: int, position: OffloadPosition) -> TextRow:
    entry = f"{position.ledger_id}:{position.entry_id}"
    return TextRow(cells=(name, status, iso_time(time_ms), entry, str(position.offset)))


def _position_json(position: OffloadPosition) -> Mapping[str, int]:
    return {
        "ledger_id": position.ledger_id,
        "entry_id": position.entry_id,
        "offset": position.offset,
    }
