"""`rlm status`: shows what needs attention, and the stored part of each tiered topic."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from rlm.broker.cluster import ClusterView
from rlm.cli.invocation.amount_options import seconds
from rlm.cli.invocation.amounts import iso_time
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_partition
from rlm.cli.invocation.options import (
    AnyPartitionArgument,
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.reading.cluster_reading import (
    ClusterStatus,
    deleted_topics,
    read_cluster,
    shown_topics,
)
from rlm.cli.reading.status_text import MAX_PARTITION_ROWS, CommandOptions, status_text
from rlm.cli.reading.wide_table import wide_lines
from rlm.cli.terminal.lines import NARROW, output_width
from rlm.status.cluster_status import PARTITION_STATUS, PartitionStatus
from rlm.status.cluster_totals import STATUS_TOTALS, total
from rlm.status.document_parts import Json
from rlm.status.problem import PROBLEM, Problem
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError, NotFoundError, RetriableError

STATUS_DOCUMENT = JsonShape(
    name="Status",
    meaning="The tiering status of the cluster, or of the named topic or partition.",
    fields={
        "cluster_id": JsonField(JsonKind.TEXT, "Kafka's id of the cluster."),
        "partitions": JsonField(PARTITION_STATUS, "The partitions.", is_list=True),
        "problems": JsonField(PROBLEM, "What needs attention.", is_list=True),
        "totals": JsonField(STATUS_TOTALS, "All listed partitions together."),
    },
)

# Moves the cursor to the corner, and clears the screen and its history.
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_EXAMPLES = """Examples:

\b
  rlm status --config rlm.properties
  rlm status orders --watch --interval 2 --config rlm.properties
  rlm status --check --json --config rlm.properties

\b
Exit codes: 0 shown; 1 a manager does not answer, the named topic or partition
does not exist, or something needs attention and --check was given; 2 the
command line, the configuration or the cluster's address is wrong; 130 ended
by Ctrl-C.
"""

_Wide = Annotated[
    bool, typer.Option("--wide", help="Print all columns, one row per partition, and no problems.")
]
_Watch = Annotated[
    bool,
    typer.Option("--watch", help="Repeat until Ctrl-C. Clears a terminal before each round."),
]
_DEFAULT_INTERVAL_S = 5.0
_Interval = Annotated[
    float | None,
    typer.Option(
        parser=seconds(least_s=1.0),
        metavar="DURATION",
        help="Pause between the rounds of --watch; in seconds if it has no unit.",
        show_default="5s",
    ),
]
_Check = Annotated[
    bool,
    typer.Option("--check", help="End with exit code 1 if something needs attention."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status", epilog=_EXAMPLES)(_status)


@with_cluster_options
def _status(
    context: typer.Context,
    name: AnyPartitionArgument = None,
    *,
    wide: _Wide = False,
    watch: _Watch = False,
    interval: _Interval = None,
    check: _Check = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Show problems, what is stored, and the copy lag.

    Problems come first, each with its reason and the command to type next. The table has a row per
    partition, or per topic if there are more than 20 partitions and you name no topic. The managers
    report lag and trims. If a manager does not answer, the lag of its partitions is unknown, and
    the command ends with exit code 1.
    """
    if watch and (check or as_json):
        raise InvalidConfigError(
            "--watch excludes --check and --json", advice="Remove --watch, or the others"
        )
    if interval is not None and not watch:
        raise InvalidConfigError(
            "--interval has no effect without --watch", advice="Give both or neither"
        )
    if wide and as_json:
        raise InvalidConfigError("--wide and --json exclude each other", advice="Give one")
    named = None if name is None else PartitionName.parse(name)
    options = _command_options(context, cluster)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        with reaching_cluster(cluster.config):
            view = _view(session, named)
        if watch:
            interval_ms = round((interval or _DEFAULT_INTERVAL_S) * 1000)
            _repeat(session, view, named, options, interval_ms=interval_ms, wide=wide)
        status = read_cluster(session, view, named)
        cluster_id = session.cluster_id
    with printing():
        if as_json:
            document = status_json(cluster_id, status.rows, status.problems)
            typer.echo(json.dumps(document, indent=2))
        else:
            _print(status, named, options, wide=wide)
    if wide or as_json:
        _warn(status)
    if status.silent_managers:
        raise RetriableError(
            "cannot show the lag and trims of all partitions: managers do not answer",
            managers=len(status.silent_managers),
            advice="Correct the problems that `rlm status` shows",
        )
    if check and status.problems:
        raise typer.Exit(1)


def _view(session: CommandSession, named: PartitionName | None) -> ClusterView:
    """Return the brokers, and the topics to show.

    Raises NotFoundError if the named topic or partition does not exist, unless the topic is a
    deleted one with stored data.
    """
    view = session.bootstrap.view(shown_topics(session, named))
    if named is not None:
        try:
            find_partition(view, named)
        except NotFoundError:
            if not deleted_topics(session, named):
                raise
    return view


def _repeat(
    session: CommandSession,
    view: ClusterView,
    named: PartitionName | None,
    options: CommandOptions,
    *,
    interval_ms: int,
    wide: bool,
) -> None:
    """Print rounds until Ctrl-C; a round that fails prints its error."""
    while True:
        found: ClusterStatus | RetriableError
        try:
            found = read_cluster(session, view, named)
        except RetriableError as error:
            found = error
        with printing():
            if sys.stdout.isatty():
                typer.echo(_CLEAR, nl=False)
            typer.echo(f"{iso_time(session.clock.wall_ms())}, every {interval_ms / 1000:g} s\n")
            if isinstance(found, RetriableError):
                typer.echo(f"rlm: {found}\n")
            else:
                _print(found, named, options, wide=wide)
                typer.echo("")
        session.clock.sleep_ms(interval_ms)
        view = _next_view(session, view, named)


def _next_view(
    session: CommandSession, view: ClusterView, named: PartitionName | None
) -> ClusterView:
    """Return the current view; the last known `view` if no broker answers."""
    try:
        return _view(session, named)
    except RetriableError:
        return view


def _print(
    status: ClusterStatus, named: PartitionName | None, options: CommandOptions, *, wide: bool
) -> None:
    if wide:
        for line in wide_lines(status.rows):
            typer.echo(line)
        return
    text = status_text(
        status.rows,
        status.problems,
        options=options,
        width=output_width() or NARROW,  # People also read this report in mails.
        by_topic=named is None and len(status.rows) > MAX_PARTITION_ROWS,
    )
    typer.echo(text)


def status_json(
    cluster_id: str, rows: Sequence[PartitionStatus], problems: Iterable[Problem]
) -> Json:
    """Return the document of --json."""
    return {
        "cluster_id": cluster_id,
        "partitions": [row.to_json() for row in rows],
        "problems": [each.to_json() for each in problems],
        "totals": total(rows).to_json(),
    }


def _warn(status: ClusterStatus) -> None:
    """Print to standard error which processes do not answer, for --wide and --json."""
    for tip, error in status.silent_leaders.items():
        typer.echo(
            f"rlm: {tip.topic}:{tip.partition}: its leader does not answer: {error}", err=True
        )
    for reason in status.silent_managers.values():
        typer.echo(f"rlm: {reason}", err=True)


def _command_options(context: typer.Context, cluster: ClusterOptions) -> CommandOptions:
    """Return the options of the cluster as this command line gives them."""
    given = [
        f"--{name.replace('_', '-').removesuffix('-file')} {shlex.quote(str(value))}"
        for name in ("config", "bootstrap_server", "command_config_file")
        if (value := context.params.get(name)) is not None and _is_typed(context, name)
    ]
    servers = cluster.config.cluster.bootstrap_text
    return CommandOptions(rlm=" ".join(given), kafka=f"--bootstrap-server {servers}")


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
