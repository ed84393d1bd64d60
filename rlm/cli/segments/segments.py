"""`rlm segments list`: lists the stored segments of a topic, from the metadata topic."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Annotated

import typer

from rlm.cli.invocation.log_bounds import PartitionName, require_offset
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    PartitionArgument,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import open_session
from rlm.cli.segments import deletion
from rlm.cli.segments.segment_lines import STATE_NAMES, segment_lines, segments_json
from rlm.cli.terminal.lines import output_width
from rlmm.spi import RemoteLogMetadataManager, SegmentRecord
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState

_EXAMPLES = """Examples:

\b
  rlm segments list orders --config rlm.properties
  rlm segments list orders:0 --from 120000 --to 240000 --wide
  rlm segments list orders --state deleting --json
"""


class _State(Enum):
    COPYING = STATE_NAMES[SegmentState.COPY_SEGMENT_STARTED]
    FINISHED = STATE_NAMES[SegmentState.COPY_SEGMENT_FINISHED]
    DELETING = STATE_NAMES[SegmentState.DELETE_SEGMENT_STARTED]
    DELETED = STATE_NAMES[SegmentState.DELETE_SEGMENT_FINISHED]


_StateOption = Annotated[
    _State | None,
    typer.Option("--state", help="List only this state; default: all states except deleted."),
]
_From = Annotated[
    int,
    typer.Option(
        "--from",
        min=0,
        metavar="OFFSET",
        help="List only segments that contain this offset or later ones.",
        callback=require_offset,
    ),
]
_To = Annotated[
    int | None,
    typer.Option(
        "--to",
        min=0,
        metavar="OFFSET",
        help="List only segments that begin before this offset.",
        callback=require_offset,
    ),
]
_Wide = Annotated[
    bool,
    typer.Option(
        "--wide", help="Also print timestamps, leader epochs, layouts and the objects' keys."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    segments = typer.Typer(help=_segments.__doc__, no_args_is_help=True)
    segments.callback()(_segments)
    segments.command("list", epilog=_EXAMPLES)(_list)
    deletion.add_to(segments)
    app.add_typer(segments, name="segments")


def _segments() -> None:
    """List stored segments, or delete streamed ones."""


@with_cluster_options
def _list(
    partition: PartitionArgument,
    *,
    state: _StateOption = None,
    from_offset: _From = 0,
    to_offset: _To = None,
    wide: _Wide = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """List a topic's segments from the metadata topic.

    Each row shows the segment's id, its offsets as [first, end), its state, the size of its log,
    and the date of its newest record. The metadata does not contain the oldest record's timestamp.
    """
    name = PartitionName.parse(partition)
    if wide and as_json:
        raise InvalidConfigError("--wide and --json exclude each other", advice="Give one")
    if to_offset is not None and to_offset <= from_offset:
        raise InvalidConfigError(
            "no offsets are selected: --to is not above --from",
            from_offset=from_offset,
            to_offset=to_offset,
            advice="Give a larger --to, or a smaller --from",
        )
    states = tuple(each for each, text in STATE_NAMES.items() if state and text == state.value)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        _, partitions = find_tiered(session, name)
        found = selected(
            session.metadata, partitions, states, from_offset=from_offset, to_offset=to_offset
        )
        with printing():
            if as_json:
                sys.stdout.writelines(segments_json(found))
                sys.stdout.write("\n")
            else:
                for line in segment_lines(found, wide=wide, width=output_width()):
                    typer.echo(line)


def selected(
    metadata: RemoteLogMetadataManager,
    partitions: Iterable[TopicIdPartition],
    states: tuple[SegmentState, ...],
    *,
    from_offset: int = 0,
    to_offset: int | None = None,
) -> Iterator[tuple[TopicIdPartition, SegmentRecord]]:
    """Yield the segments with offsets in the range, in `states`; empty: all but deleted ones."""
    for tip in partitions:
        for record in metadata.list_remote_log_segments(
            tip, states=states or None, from_offset=from_offset
        ):
            if to_offset is None or record.metadata.offsets.start_offset < to_offset:
                yield tip, record
