"""`rlm offload-status`: shows the progress of a requested offload, and offload segments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import typer

from rlm.cli.invocation.amounts import counted, size_text
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.manager_access import copy_progress, manager_client
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    PartitionArgument,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import open_session
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.cli.topics.offload_segment_text import (
    OFFLOAD_SEGMENT,
    offload_segment_json,
    offload_segment_lines,
)
from rlm.operator.offload_status import OffloadState, OffloadStatus, offload_status
from rlm.status.document import PARTITION_REPORT
from rlm.status.document_parts import PARTITION
from rlmm.events.offload_segment import offload_segments
from rlmm.state.offload_segments import OffloadSegmentRecord
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import TopicIdPartition, id_to_text

OFFLOAD_STATUS_DOCUMENT = JsonShape(
    name="OffloadStatuses",
    meaning="Progress of the requested offload of each partition.",
    fields={
        "partitions": JsonField(
            JsonShape(
                name="OffloadStatus",
                meaning="Progress of the newest offload request of a partition.",
                fields={
                    **PARTITION,
                    "state": JsonField(
                        JsonKind.TEXT,
                        f"One of {', '.join(f'`{each.value}`' for each in OffloadState)}.",
                    ),
                    "reason": JsonField(
                        JsonKind.TEXT,
                        "What blocks the copies, or why the manager does not answer; null if "
                        "neither applies.",
                        is_nullable=True,
                    ),
                    "requested_offset": JsonField(
                        JsonKind.OFFSET,
                        "The request is for records before this offset; null if there is none.",
                        is_nullable=True,
                    ),
                    "stored_end_offset": JsonField(
                        JsonKind.OFFSET,
                        "All records before it are stored; null if the manager does not answer.",
                        is_nullable=True,
                    ),
                    "lag_segments": PARTITION_REPORT.fields["lag_segments"],
                    "lag_bytes": PARTITION_REPORT.fields["lag_bytes"],
                    "offload_segments": JsonField(
                        OFFLOAD_SEGMENT,
                        "The offload segments that are assigned, offloaded or failed.",
                        is_list=True,
                    ),
                },
            ),
            "The partitions.",
            is_list=True,
        )
    },
)

_EXAMPLES = """Examples:

\b
  rlm offload-status orders
  rlm offload-status orders:0 --json

\b
Exit codes: 0 everything requested is stored; 1 something is not stored or its
state is unknown, or the topic does not exist; 2 the command line, the
configuration or the cluster's address is wrong.
"""
_COLUMNS = (
    TextColumn(name="partition"),
    TextColumn(name="state"),
    TextColumn(name="requested to", is_number=True),
    TextColumn(name="stored to", is_number=True),
    TextColumn(name="lag"),
    TextColumn(name="reason", is_movable=True),
)
_BELOW = "  "


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("offload-status", epilog=_EXAMPLES)(_offload_status)


@with_cluster_options
def _offload_status(
    partition: PartitionArgument,
    *,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Show the progress of a requested offload.

    Shows the last offset that `rlm offload` requested for each partition, and how far the leader's
    manager has stored the log. The lag includes rolled segments beyond that offset that are not
    stored. For a streamed topic, lists the last 10 offload segments; with --json, all of them.
    """
    name = PartitionName.parse(partition)
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        policy, partitions = find_tiered(session, name)
        source = copy_progress(session, client)
        progress = source.rolled(policy)
        found = [
            offload_status(
                tip,
                session.metadata.partition_state(tip).offload_requested_offset,
                progress.get(tip),
                "" if tip in progress else source.silence(tip),
            )
            for tip in partitions
        ]
        streamed = {tip: offload_segments(session.metadata, tip) for tip in partitions}
    with printing():
        if as_json:
            rows = [status_as_json(each, streamed[each.partition]) for each in found]
            typer.echo(json.dumps({"partitions": rows}, indent=2))
        else:
            print_lines(status_lines(found, streamed, width=output_width()))
    if not all(each.is_complete for each in found):
        raise typer.Exit(1)


def status_lines(
    found: Sequence[OffloadStatus],
    streamed: Mapping[TopicIdPartition, Sequence[OffloadSegmentRecord]],
    *,
    width: int | None,
) -> Iterator[str]:
    """Yield a row for each partition, and its offload segments below the row."""
    narrower = None if width is None else width - len(_BELOW)
    rows = (
        TextRow(
            cells=(
                f"{each.partition.topic}:{each.partition.partition}",
                each.state.value,
                "" if each.requested_offset is None else str(each.requested_offset),
                "?" if each.stored_end_offset is None else str(each.stored_end_offset),
                _lag_text(each),
                each.reason,
            ),
            below=[
                f"{_BELOW}{line}"
                for line in offload_segment_lines(streamed.get(each.partition, ()), width=narrower)
            ],
        )
        for each in found
    )
    return table_lines(_COLUMNS, rows, width=width)


def _lag_text(status: OffloadStatus) -> str:
    if status.lag_segments is None:
        return "?"
    size = "" if status.lag_bytes is None else f", {size_text(status.lag_bytes)}"
    return f"{counted(status.lag_segments, 'segment')}{size}"


def status_as_json(
    status: OffloadStatus, streamed: Sequence[OffloadSegmentRecord]
) -> Mapping[str, object]:
    """Return a partition's status as an OffloadStatus document."""
    return {
        "topic": status.partition.topic,
        "topic_id": id_to_text(status.partition.topic_id),
        "partition": status.partition.partition,
        "state": status.state.value,
        "reason": status.reason or None,
        "requested_offset": status.requested_offset,
        "stored_end_offset": status.stored_end_offset,
        "lag_segments": status.lag_segments,
        "lag_bytes": status.lag_bytes,
        "offload_segments": [*map(offload_segment_json, streamed)],
    }
