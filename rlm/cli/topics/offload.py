"""`rlm offload`: requests copies now, and waits for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Annotated
from uuid import uuid4

import typer

from rlm.cli.invocation.amount_options import seconds
from rlm.cli.invocation.log_bounds import PartitionName, require_offset
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
from rlm.cli.terminal.lines import print_lines
from rlm.operator.offload import Offload, OffloadedPartition, OffloadRequest
from rlm.status.document_parts import PARTITION, STORED_OBJECT
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata

_DEFAULT_WAIT_S = 3600.0

_OFFLOADED_SEGMENT = JsonShape(
    name="OffloadedSegment",
    meaning="A segment that was stored for the request.",
    fields={
        "id": JsonField(JsonKind.ID, "The segment's id."),
        "start_offset": JsonField(JsonKind.OFFSET, "Its first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after its last one."),
        "objects": JsonField(STORED_OBJECT, "Its objects.", is_list=True),
    },
)
OFFLOAD_DOCUMENT = JsonShape(
    name="Offloaded",
    meaning="The partitions of an offload, and what it stored.",
    fields={
        "partitions": JsonField(
            JsonShape(
                name="OffloadedPartition",
                meaning="One partition of the request.",
                fields={
                    **PARTITION,
                    "stored_end_offset": JsonField(
                        JsonKind.OFFSET, "All records before it are stored."
                    ),
                    "segments": JsonField(
                        _OFFLOADED_SEGMENT, "The segments that the request stored.", is_list=True
                    ),
                },
            ),
            "The partitions.",
            is_list=True,
        )
    },
)
OFFLOAD_REQUEST_DOCUMENT = JsonShape(
    name="OffloadRequests",
    meaning="The partitions of an offload, and the requested offsets.",
    fields={
        "partitions": JsonField(
            JsonShape(
                name="OffloadRequest",
                meaning="One partition of the request.",
                fields={
                    **PARTITION,
                    "requested_offset": JsonField(
                        JsonKind.OFFSET,
                        "The request is for all rolled segments wholly before this offset; for a "
                        "stream, for all records before it.",
                    ),
                    "stored_end_offset": JsonField(
                        JsonKind.OFFSET,
                        "All records before it were stored when the command made the request.",
                    ),
                },
            ),
            "The partitions.",
            is_list=True,
        )
    },
)

_To = Annotated[
    int | None,
    typer.Option(
        "--to",
        min=0,
        metavar="OFFSET",
        help="Store only segments wholly before this offset, or a stream's records before it.",
        callback=require_offset,
    ),
]
_Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        parser=seconds(),
        metavar="DURATION",
        help="How long to wait until the segments are stored; in seconds if it has no unit.",
        show_default="1h",
    ),
]
_NoWait = Annotated[
    bool,
    typer.Option(
        "--no-wait", help="Only request the copies; `rlm offload-status` shows their progress."
    ),
]
_EXAMPLES = """Examples:

\b
  rlm offload orders:0 --to 120000 --json
  rlm offload orders --no-wait
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("offload", epilog=_EXAMPLES)(_offload)


@with_cluster_options
def _offload(
    partition: PartitionArgument,
    *,
    to: _To = None,
    wait: _Wait = None,
    no_wait: _NoWait = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Store all rolled segments now, without any copy lag.

    Returns when the segments are stored, and lists them. With --no-wait, only requests the copies,
    and prints the requested offset of each partition. Managers store the active segment only after
    the broker has rolled it, or after it was idle for remote.log.idle.copy.ms. For a streamed
    topic, they store the records that are committed now, and complete the open offload segment.
    Ctrl-C ends the wait, not the copies.
    """
    if no_wait and wait is not None:
        raise InvalidConfigError("--wait has no effect with --no-wait", advice="Give one")
    wait_ms = round((_DEFAULT_WAIT_S if wait is None else wait) * 1000)
    name = PartitionName.parse(partition)
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        policy, partitions = find_tiered(session, name)
        offload = Offload(
            session.metadata,
            copy_progress(session, client),
            session.clock,
            new_id=uuid4,
            progress=lambda text: typer.echo(text, err=True),
        )
        requested: tuple[OffloadRequest, ...] = ()
        done: tuple[OffloadedPartition, ...] = ()
        if no_wait:
            requested = offload.request(policy, partitions, to_offset=to)
        else:
            done = offload.offload(policy, partitions, to_offset=to, timeout_ms=wait_ms)
    rows = [*map(request_as_json, requested), *map(offloaded_as_json, done)]
    lines = [*map(request_line, requested), *_lines(done)]
    with printing():
        if as_json:
            typer.echo(json.dumps({"partitions": rows}, indent=2))
        else:
            print_lines(lines)


def request_line(requested: OffloadRequest) -> str:
    """Return the output of --no-wait for a partition."""
    label = f"{requested.partition.topic}:{requested.partition.partition}"
    return f"{label} requested to {requested.offset}, stored to {requested.stored_end_offset}"


def request_as_json(requested: OffloadRequest) -> Mapping[str, object]:
    """Return a request as an OffloadRequest document."""
    return {
        "topic": requested.partition.topic,
        "topic_id": id_to_text(requested.partition.topic_id),
        "partition": requested.partition.partition,
        "requested_offset": requested.offset,
        "stored_end_offset": requested.stored_end_offset,
    }


def _lines(done: Iterable[OffloadedPartition]) -> Iterable[str]:
    for each in done:
        label = f"{each.partition.topic}:{each.partition.partition}"
        yield f"{label} stored to {each.end_offset}, segments stored now: {len(each.segments)}"
        for metadata in each.segments:
            for stored in metadata.objects:
                checksum = "-" if stored.crc32c is None else f"{stored.crc32c:08x}"
                yield f"  {metadata.offsets}  {stored.key}  {stored.length_bytes} bytes  {checksum}"


def offloaded_as_json(done: OffloadedPartition) -> Mapping[str, object]:
    """Return a partition as an OffloadedPartition document."""
    return {
        "topic": done.partition.topic,
        "topic_id": id_to_text(done.partition.topic_id),
        "partition": done.partition.partition,
        "stored_end_offset": done.end_offset,
        "segments": [_segment_as_json(metadata) for metadata in done.segments],
    }


def _segment_as_json(metadata: RemoteLogSegmentMetadata) -> Mapping[str, object]:
    return {
        "id": id_to_text(metadata.segment_id.id),
        "start_offset": metadata.offsets.start_offset,
        "end_offset": metadata.offsets.end_offset,
        "objects": [
            {"key": each.key, "bytes": each.length_bytes, "crc32c": each.crc32c}
            for each in metadata.objects
        ],
    }
