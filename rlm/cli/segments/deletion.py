"""`rlm segments delete --streamed`: deletes streamed segments that other segments replace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Annotated

import typer

from rlm.cli.invocation.amount_options import seconds
from rlm.cli.invocation.amounts import counted, size_text
from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.manager_access import leading_managers, manager_client
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    PartitionArgument,
    YesOption,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import local_starts_of, open_session
from rlm.cli.segments.deletion_lines import deletion_lines, deletions_json
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.operator.streamed_deletion import DeletionState, SegmentDeletion, StreamedDeletions
from rsm.program.confirmation import confirm
from rsm.segment.errors import InvalidConfigError, RetriableError

_DEFAULT_WAIT_S = 3600.0
_EXAMPLES = """Examples:

\b
  rlm segments delete orders --streamed --dry-run --config rlm.properties
  rlm segments delete orders:0 --streamed --keep-only-copies --yes
"""

_Streamed = Annotated[
    bool,
    typer.Option("--streamed", help="Required. Delete only segments that were stored as a stream."),
]
_KeepOnlyCopies = Annotated[
    bool,
    typer.Option(
        "--keep-only-copies",
        help="Keep segments that are the only copy of records, and delete the others.",
    ),
]
_Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        parser=seconds(),
        metavar="DURATION",
        help="How long to wait until the segments are deleted; in seconds if it has no unit.",
        show_default="1h",
    ),
]


def add_to(segments: typer.Typer) -> None:
    """Add the command."""
    segments.command("delete", help=_delete.__doc__, epilog=_EXAMPLES)(_delete)


@with_cluster_options
@deletes()
def _delete(
    name: PartitionArgument,
    *,
    streamed: _Streamed = False,
    keep_only_copies: _KeepOnlyCopies = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the segments; change nothing.")
    ] = False,
    yes: YesOption = False,
    wait: _Wait = _DEFAULT_WAIT_S,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Delete streamed segments that other segments replace.

    The topic must no longer be streamed. First, the leaders' managers copy the records that only
    the broker and streamed segments contain. Then they delete each streamed segment whose records
    are all in other segments. A streamed segment that is the only copy of records stays. If there
    is such a segment, the command changes nothing, unless you give --keep-only-copies. Ctrl-C ends
    the wait, not the deletions.
    """
    if not streamed:
        raise InvalidConfigError(
            "cannot delete segments: the command deletes only streamed ones",
            advice="Give --streamed",
        )
    parsed = PartitionName.parse(name)
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        policy, partitions = find_tiered(session, parsed)
        deletions = StreamedDeletions(
            session.metadata,
            leading_managers(session, client),
            partial(local_starts_of, session, parsed.topic),
            session.clock,
            progress=lambda text: typer.echo(text, err=True),
        )
        rows = deletions.examine(policy, partitions, timeout_ms=session.remaining_ms())
        if not dry_run:
            kept = [row for row in rows if row.state is DeletionState.ONLY_COPY]
            if kept and not keep_only_copies:
                raise _only_copies(kept)
            wanted = [row for row in rows if row.state is DeletionState.TO_DELETE]
            if wanted:
                confirm(_question(wanted), yes=yes)
            rows = (*kept, *deletions.delete(policy, wanted, timeout_ms=round(wait * 1000)))
    with printing():
        if as_json:
            typer.echo(deletions_json(rows))
        else:
            print_lines(deletion_lines(rows, width=output_width()))
    require_deleted(rows)


def require_deleted(rows: Sequence[SegmentDeletion]) -> None:
    """Raise RetriableError if the managers gave up the deletion of a segment's objects."""
    left = [row for row in rows if row.state is DeletionState.DEAD_LETTERED]
    if left:
        raise RetriableError(
            "cannot delete all objects: the managers gave up after repeated failures",
            segments=len(left),
            first_segment=left[0].segment.metadata.segment_id,
            advice="Find the causes with `rlm dlq list`, then run `rlm dlq retry`",
        )


def _question(wanted: Sequence[SegmentDeletion]) -> str:
    size_bytes = sum(row.segment.metadata.segment_size_bytes for row in wanted)
    topic = wanted[0].partition.topic
    segments = counted(len(wanted), "streamed segment")
    return f"Delete {segments} of {topic} ({size_text(size_bytes)})?"


def _only_copies(kept: Sequence[SegmentDeletion]) -> InvalidConfigError:
    first = kept[0].segment
    return InvalidConfigError(
        "cannot delete all streamed segments, so nothing was changed: some of them are the only "
        "copy of records",
        segments=len(kept),
        first_segment=first.metadata.segment_id,
        only_copy=",".join(map(str, first.only_here)),
        advice="Wait until they expire, or give --keep-only-copies to delete the others",
    )
