"""`rlm check`: checks each broker's manager and gateway, and tests them with a topic on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from rlm.broker.client_check import check_client
from rlm.broker.topics.kafka_canary_topics import KafkaCanaryTopics
from rlm.cli.invocation.amount_options import seconds
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.managers import ask_each, live_managers, registered_live
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.invocation.tiering_session import tiering_of
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.config.load import CommandConfig, client_command_config
from rlm.operator.end_to_end import CheckSettings, CheckTools, EndToEndCheck
from rlm.policy.blocked import Blocked
from rlm.policy.request.canary import CheckResult, CheckRow
from rlm.rest.manager_client import ManagerClient
from rlm.status.document import LEADER
from rlm.worker.cluster_access import client_properties
from rlm.worker.fresh_id import fresh_id
from rlm.worker.store_access import open_chunk_storage
from rlmm.events.registration import ProcessRegistered, ProcessRole
from rsm.config.choices import Backend
from rsm.config.storage import StorageConfig
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError, TieredStorageError
from rsm.storage.chunk_storage import ChunkStorage

_CHECK = JsonShape(
    name="CheckResult",
    meaning="One check of a process, a partition, an address or the store.",
    fields={
        "check": JsonField(JsonKind.TEXT, "What was checked."),
        "target": JsonField(JsonKind.TEXT, "The process, partition, address or bucket."),
        "result": JsonField(
            JsonKind.TEXT, f"One of {', '.join(f'`{each.value}`' for each in CheckResult)}."
        ),
        "duration_ms": JsonField(JsonKind.DURATION, "How long the check took; 0 if not measured."),
        "problem": JsonField(
            JsonKind.TEXT, "Why it failed or was skipped; null if it passed.", is_nullable=True
        ),
    },
)
CHECK_DOCUMENT = JsonShape(
    name="Check",
    meaning="Whether the parts of the cluster work together.",
    fields={
        "ok": JsonField(JsonKind.FLAG, "Whether no check failed."),
        "checks": JsonField(_CHECK, "The checks, in the order of the table.", is_list=True),
    },
)

_COLUMNS = (
    TextColumn(name="check"),
    TextColumn(name="of", is_movable=True),
    TextColumn(name="result"),
    TextColumn(name="s", is_number=True),
    TextColumn(name="problem", is_movable=True),
)
_DEFAULT_WAIT_S = 300.0

_EndToEnd = Annotated[
    bool,
    typer.Option("--end-to-end", help="Also create, write, store, trim and read a topic."),
]
_Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        parser=seconds(least_s=1.0),
        metavar="DURATION",
        help="With --end-to-end: how long the check may take; in seconds if it has no unit. The "
        "cleanup takes up to 3 more minutes.",
        show_default="5m",
    ),
]
_Keep = Annotated[
    bool, typer.Option("--keep", help="With --end-to-end: keep the topic for inspection.")
]
_GatewayConfig = Annotated[
    Path | None,
    typer.Option(
        "--gateway-config",
        metavar="FILE",
        help="Properties of the Kafka client for gateways, if they differ from those for brokers.",
    ),
]
_RULES_CHECK = "lifecycle rules"
_WITHOUT_RULES = frozenset({Backend.FILESYSTEM, Backend.AZURE, Backend.HDFS})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "check",
        epilog="Example: rlm check --end-to-end --wait 120 --config rlm.properties",
    )(_check)


@with_cluster_options
def _check(
    *,
    end_to_end: _EndToEnd = False,
    wait: _Wait = _DEFAULT_WAIT_S,
    keep: _Keep = False,
    gateway_config: _GatewayConfig = None,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Check that all parts of the cluster work together.

    Without --end-to-end, the check changes nothing. It fails if a broker has no live and ready
    manager and gateway, if other hosts cannot reach a registered address, or if a manager does not
    answer. It also fails if a lifecycle rule of an S3 or GCS bucket deletes or archives stored
    segments.

    With --end-to-end, the check also creates a topic with a partition on every broker, writes to it
    and reads it through every gateway, and waits until every manager has stored and trimmed its
    partition. At the end, it deletes the topic and its stored objects. Run the check on a host from
    which clients connect.

    The exit code is 0 if no check failed, 1 if one failed, and 2 if the cluster cannot be reached.
    """
    _check_options(end_to_end=end_to_end, keep=keep, gateway_config=gateway_config)
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        check = EndToEndCheck(
            _tools(session, client, gateway_config),
            CheckSettings(
                wait_ms=round(wait * 1000),
                keep=keep,
                unique=fresh_id().hex[:8],
                max_replicas=cluster.config.metadata.replication_factor,
                trim_min_age_ms=cluster.config.manager.trim_min_age_ms,
            ),
            _show,
        )
        if end_to_end:
            with reaching_cluster(cluster.config):
                session.topics.view(())
            rows = check.run()
        else:
            with reaching_cluster(cluster.config):
                rows = check.registrations()
        rows = (*rows, *store_rule_rows(cluster.config.storage))
    ok = all(row.result is not CheckResult.FAILED for row in rows)
    with printing():
        if as_json:
            sys.stdout.write(json.dumps(check_json(rows, ok=ok), indent=2) + "\n")
        else:
            print_lines(check_lines(rows, width=output_width()))
    if not ok:
        raise typer.Exit(1)


def _check_options(*, end_to_end: bool, keep: bool, gateway_config: Path | None) -> None:
    """Raise InvalidConfigError if an option has no effect, or the gateways' file is invalid."""
    given = {"--keep": keep, "--gateway-config": gateway_config is not None}
    for option, is_given in given.items():
        if is_given and not end_to_end:
            raise InvalidConfigError(
                f"{option} has no effect without --end-to-end", advice="Give both or neither"
            )
    if gateway_config is not None:
        client_command_config("localhost:9092", gateway_config, check_client)


def _tools(
    session: CommandSession, client: ManagerClient, gateway_config: Path | None
) -> CheckTools:
    def client_of(address: str | None) -> Mapping[str, str]:
        return _client(session.config, address, gateway_config)

    def live(role: ProcessRole) -> Sequence[ProcessRegistered]:
        return registered_live(session.metadata, session.clock, role)

    return CheckTools(
        topics=session.topics,
        canaries=KafkaCanaryTopics(client_of),
        tiering=tiering_of(session),
        metadata=session.metadata,
        managers=_LiveManagers(session, client),
        live=live,
        clock=session.clock,
        new_id=uuid4,
    )


def _client(config: CommandConfig, address: str | None, path: Path | None) -> Mapping[str, str]:
    if address is None:
        return client_properties(config.cluster)
    if path is None:
        return {**client_properties(config.cluster), "bootstrap.servers": address}
    return client_properties(client_command_config(address, path, check_client).cluster)


class _LiveManagers:
    """Represents the managers that are live at each request. See Managers."""

    def __init__(self, session: CommandSession, client: ManagerClient) -> None:
        self._session = session
        self._client = client

    def problem(self, manager: ProcessRegistered) -> str:
        try:
            self._client.partitions(manager)
        except TieredStorageError as error:
            return str(error)
        return ""

    def wake(self) -> None:
        # Errors are ignored: the next cycle comes anyway, and rows show managers that fail.
        ask_each(live_managers(self._session.metadata, self._session.clock), self._client.run_cycle)

    def blocked(self, topic: str) -> Mapping[int, tuple[Blocked | None, Blocked | None]]:
        managers = live_managers(self._session.metadata, self._session.clock)
        answers = ask_each(managers, lambda each: self._client.partitions(each, topic=topic))
        return {
            report.topic_id_partition.partition: (report.copy_blocked, report.trim_blocked)
            for _, reports in answers
            if not isinstance(reports, TieredStorageError)
            for report in reports
            if report.role == LEADER
        }


def _show(row: CheckRow) -> None:
    """Print a row to standard error as soon as it is known."""
    problem = f": {row.problem}" if row.problem else ""
    typer.echo(f"{row.check} {row.target}: {row.result.value}{problem}", err=True)


def store_rule_rows(settings: StorageConfig | None) -> tuple[CheckRow, ...]:
    """Return the rows of the store's lifecycle rules.

    Returns none if no store is configured, or if `rlm` reads no rules of its backend.
    """
    if settings is None or settings.backend in _WITHOUT_RULES:
        return ()
    try:
        with closing(open_chunk_storage(settings)) as storage:
            return rule_rows(storage, settings.backend_name, settings.key_prefix)
    except InvalidConfigError as error:
        return (_unread_rules(settings.backend_name, error),)


def rule_rows(storage: ChunkStorage, target: str, key_prefix: str) -> tuple[CheckRow, ...]:
    """Return a failed row for each rule that can affect stored objects; a passed row if none can.

    Returns one row with the reason if the rules cannot be read.
    """
    try:
        rules = storage.lifecycle_rules()
    except TieredStorageError as error:
        return (_unread_rules(target, error),)
    problems = [
        f"{each}. Data loss: the rule also applies to stored segments. Remove it, or exclude the "
        "prefix of the keys."
        for each in rules
        if each.can_affect(key_prefix)
    ]
    rows = tuple(_rule_row(target, CheckResult.FAILED, problem) for problem in problems)
    return rows or (_rule_row(target, CheckResult.PASSED),)


def _unread_rules(target: str, error: TieredStorageError) -> CheckRow:
    """Return a failed row if the store's configuration is invalid; otherwise a skipped row."""
    if isinstance(error, InvalidConfigError):
        return _rule_row(target, CheckResult.FAILED, f"cannot use the store: {error}")
    return _rule_row(target, CheckResult.SKIPPED, f"cannot read the rules: {error}")


def _rule_row(target: str, result: CheckResult, problem: str = "") -> CheckRow:
    return CheckRow(check=_RULES_CHECK, target=target, result=result, problem=problem)


def check_json(rows: Sequence[CheckRow], *, ok: bool) -> Mapping[str, object]:
    """Return the output for programs."""
    return {
        "ok": ok,
        "checks": [
            {
                "check": row.check,
                "target": row.target,
                "result": row.result.value,
                "duration_ms": row.duration_ms,
                "problem": row.problem or None,
            }
            for row in rows
        ],
    }


def check_lines(rows: Sequence[CheckRow], *, width: int | None) -> Iterator[str]:
    """Yield the table."""
    cells = (
        (each.check, each.target, each.result.value, _seconds_text(each), each.problem)
        for each in rows
    )
    return table_lines(_COLUMNS, (TextRow(cells=each) for each in cells), width=width)


def _seconds_text(row: CheckRow) -> str:
    return f"{row.duration_ms / 1000:.1f}"
