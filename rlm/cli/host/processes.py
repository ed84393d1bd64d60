"""`rlm processes`: lists the brokers, managers and gateways of the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated
from uuid import UUID

import typer

from rlm.cli.invocation.amounts import age_text
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.status.cluster_processes import PROCESS_STATUS, ProcessStatus, cluster_processes
from rlm.worker.fresh_id import fresh_id
from rlmm.events.registration import NO_BROKER, ProcessReadiness, registrations
from rlmm.registration import is_clock_stopped, is_live, now_of
from rlmm.spi import RemoteLogMetadataManager
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_from_text, id_to_text

PROCESSES_DOCUMENT = JsonShape(
    name="Processes",
    meaning="The processes of the cluster: brokers, then managers, then gateways, by broker id.",
    fields={
        "cluster_id": JsonField(JsonKind.TEXT, "Kafka's id of the cluster."),
        "processes": JsonField(PROCESS_STATUS, "The processes, in this order.", is_list=True),
    },
)

_COLUMNS = (
    TextColumn(name="role"),
    TextColumn(name="broker", is_number=True),
    TextColumn(name="address", is_movable=True),
    TextColumn(name="HTTP address", is_movable=True),
    TextColumn(name="version"),
    TextColumn(name="heartbeat"),
    TextColumn(name="state"),
    TextColumn(name="reason", is_movable=True),
)

_IDS = "`rlm processes --all --json` shows the ids"
_EXAMPLES = """Examples:

\b
  rlm processes --config rlm.properties
  rlm processes --bootstrap-server broker1:9092 --json
  rlm processes --forget=PROCESS_ID --config rlm.properties

\b
Exit codes: 0 if the processes are listed, in any state; 1 if --forget cannot
be recorded; 2 if the command line, the configuration or the cluster's address
is wrong, or if the metadata topic cannot be read in time.
"""

_All = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Also show replaced processes, and those that stopped or whose broker is gone, more "
        "than a day after their last heartbeat.",
    ),
]
_Forget = Annotated[
    str | None,
    typer.Option(
        "--forget",
        metavar="ID",
        help="Record a dead process as stopped, so that it no longer counts as a problem. --json "
        "shows its process_id.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("processes", epilog=_EXAMPLES)(_processes)


@with_cluster_options
def _processes(
    *,
    everything: _All = False,
    forget: _Forget = None,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """List brokers, managers and gateways, and their readiness.

    Managers and gateways register in the metadata topic, with the reasons if they are not ready. A
    process that is asked to stop registers as stopped, and is listed for a day. A process that ends
    otherwise is dead, and is listed until it starts again. If its broker is gone or you use
    --forget, it is listed for a day.
    """
    process_id = None if forget is None else _process_id(forget)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        with reaching_cluster(cluster.config):
            view = session.bootstrap.view(())
        now_ms = _now_ms(session)
        if process_id is not None:
            forget_process(session.metadata, process_id, now_ms=now_ms)
        rows = cluster_processes(
            {each.node_id: str(each) for each in view.brokers.values()},
            registrations(session.metadata),
            now_ms=now_ms,
            lists_all=everything,
        )
    with printing():
        if as_json:
            document = {
                "cluster_id": session.cluster_id,
                "processes": [row.to_json() for row in rows],
            }
            typer.echo(json.dumps(document, indent=2))
        else:
            print_lines(process_lines(rows, width=output_width()))


def _process_id(text: str) -> UUID:
    try:
        return id_from_text(text)
    except InvalidConfigError as error:
        raise InvalidConfigError("the process id is invalid", found=text, advice=_IDS) from error


def forget_process(metadata: RemoteLogMetadataManager, process_id: UUID, *, now_ms: int) -> None:
    """Register a dead process as stopped. Raises InvalidConfigError if it is unknown or live."""
    found = next(
        (each for each in registrations(metadata) if each.process.process_id == process_id), None
    )
    if found is None:
        raise InvalidConfigError(
            "cannot forget the process: no process has this id",
            process_id=id_to_text(process_id),
            advice=_IDS,
        )
    if is_live(found, now_ms):
        raise InvalidConfigError(
            "cannot forget the process: it is live",
            process_id=id_to_text(process_id),
            advice="Stop it first",
        )
    metadata.publish(
        replace(
            found.process,
            event_id=fresh_id(),
            readiness=ProcessReadiness.STOPPED,
            unready_reasons=(),
            gateway_address="",
        )
    )


def _now_ms(session: CommandSession) -> int:
    broker_ms, wall_ms = session.metadata.broker_time_ms(), session.clock.wall_ms()
    if broker_ms and is_clock_stopped(broker_ms, wall_ms):
        age = age_text(wall_ms - broker_ms)
        typer.echo(
            f"rlm: the newest record of the metadata topic is {age} old by this "
            "host's clock: no process registers, or this clock is ahead.",
            err=True,
        )
    return now_of(broker_ms, wall_ms)


def process_lines(rows: Sequence[ProcessStatus], *, width: int | None) -> Iterator[str]:
    """Yield the table."""
    return table_lines(_COLUMNS, map(_row, rows), width=width)


def _row(process: ProcessStatus) -> TextRow:
    age_ms = process.heartbeat_age_ms
    return TextRow(
        cells=(
            process.role,
            "" if process.broker_id == NO_BROKER else str(process.broker_id),
            process.address,
            process.http_address,
            process.version,
            "" if age_ms is None else f"{age_text(age_ms)} ago",
            process.state,
            "; ".join(process.reasons),
        )
    )
