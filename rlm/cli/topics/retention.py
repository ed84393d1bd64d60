"""`rlm retention run`: expires a topic's data past its retention now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Annotated

import typer

from rlm.cli.invocation.amount_options import seconds
from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.managers import live_managers
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    YesOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import leaders_of, open_session
from rlm.cli.terminal.lines import print_lines
from rlm.operator.retention_run import run_retention
from rlm.rest.manager_client import ManagerClient
from rlm.status.retention_preview import RETENTION_PREVIEW, RetentionPreview
from rlmm.events.registration import ProcessRegistered
from rsm.config.values import require_topic_name
from rsm.program.confirmation import confirm
from rsm.program.json_shape import JsonField, JsonShape
from rsm.segment.errors import RetriableError

RETENTION_DOCUMENT = JsonShape(
    name="Retention",
    meaning="What retention would do: with `--dry-run` now, otherwise after the last cycle.",
    fields={"partitions": JsonField(RETENTION_PREVIEW, "The partitions.", is_list=True)},
)

_DEFAULT_WAIT_S = 600.0
_EXAMPLE = "Example: rlm retention run orders --dry-run --config rlm.properties"

_Topic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The topic.", callback=require_topic_name)
]
_Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        parser=seconds(),
        metavar="DURATION",
        help="Maximum time to wait until nothing is due, in seconds if it has no unit.",
        show_default="10m",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    retention = typer.Typer(
        help="Expire data past its retention.", no_args_is_help=True, rich_markup_mode=None
    )
    retention.callback()(_group)
    retention.command("run", help=_run.__doc__, epilog=_EXAMPLE)(_run)
    app.add_typer(retention, name="retention")


def _group() -> None:
    """Expire data past its retention."""


@with_cluster_options
@deletes()
def _run(
    topic: _Topic,
    *,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what the next cycle would delete; change nothing."),
    ] = False,
    yes: YesOption = False,
    wait: _Wait = _DEFAULT_WAIT_S,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Run a topic's retention now, until nothing is due.

    The managers run one cycle after another. They decide and delete as always, a share in each
    cycle. When nothing is due, the command shows each partition's log start, and what blocks the
    expiry of more data.
    """
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        _, partitions = find_tiered(session, PartitionName(topic=topic))
        with reaching_cluster(session.config):
            leaders = leaders_of(session, topic)
        wanted = {tip.partition: leaders.get(tip.partition) for tip in partitions}
        managers = LeadersRetention(
            client, topic, wanted, live_managers(session.metadata, session.clock)
        )
        if dry_run:
            rows = managers.due()
        else:
            if not yes:
                confirm(_question(topic, managers.due()), yes=yes)
            rows = run_retention(managers, session.clock, timeout_ms=round(wait * 1000))
    with printing():
        if as_json:
            typer.echo(json.dumps({"partitions": [row.to_json() for row in rows]}, indent=2))
        else:
            print_lines(map(_line, rows))


def _question(topic: str, rows: Sequence[RetentionPreview]) -> str:
    expiring_count = sum(row.expiring_segments for row in rows)
    deletions_count = sum(len(row.deletions) for row in rows)
    due = f"segments in the next cycle: {expiring_count} expire, {deletions_count} deleted"
    return f"Delete data of {topic} that is past its retention now ({due})?"


class LeadersRetention:
    """Represents the managers of a topic's leaders; implements RetentionManagers."""

    def __init__(
        self,
        client: ManagerClient,
        topic: str,
        leaders: Mapping[int, int | None],
        managers: Iterable[ProcessRegistered],
    ) -> None:
        """`leaders` maps each partition to its leader, if any. `managers` are the live managers."""
        self._client = client
        self._topic = topic
        self._leaders = leaders
        self._managers = tuple(m for m in managers if m.broker_id in set(leaders.values()))

    def due(self) -> Sequence[RetentionPreview]:
        rows = [row for each in self._managers for row in self._client.retention(each, self._topic)]
        missing = self._leaders.keys() - {row.partition for row in rows}
        if missing:
            raise self._without_report(sorted(missing))
        return sorted(rows, key=lambda row: row.partition)

    def run_cycles(self) -> None:
        for each in self._managers:
            self._client.run_cycle(each)

    def _without_report(self, partitions: Sequence[int]) -> RetriableError:
        """Return an error that names the leaders whose managers are missing, if any are."""
        present = {each.broker_id for each in self._managers}
        leaders = {self._leaders[partition] for partition in partitions}
        missing = sorted(leader for leader in leaders - present if leader is not None)
        shown = ",".join(map(str, partitions))
        if missing:
            return RetriableError(
                "cannot run retention: leaders of some partitions have no live manager",
                topic=self._topic,
                partitions=shown,
                brokers=",".join(map(str, missing)),
                advice="Start `rlm run` on their hosts",
            )
        return RetriableError(
            "cannot run retention: some partitions have no leader, or no manager claimed them yet",
            topic=self._topic,
            partitions=shown,
            advice="Run the command again",
        )


def _line(row: RetentionPreview) -> str:
    log_start = "unknown" if row.log_start_offset is None else row.log_start_offset
    first = f"{row.topic}:{row.partition} log start {log_start}"
    if row.new_log_start_offset != row.log_start_offset:
        first += (
            f" -> {row.new_log_start_offset} (expiring segments: {row.expiring_segments},"
            f" {row.expiring_bytes} bytes: {row.rule})"
        )
    parts = [first]
    if row.deletions:
        size_bytes = sum(each.size_bytes for each in row.deletions)
        parts.append(f"stored segments to delete: {len(row.deletions)}, {size_bytes} bytes")
    if row.new_local_start_offset != row.local_start_offset:
        parts.append(f"trim {row.local_start_offset} -> {row.new_local_start_offset}")
    if row.expiry_blocked is not None:
        parts.append(f"blocked: {row.expiry_blocked.reason}")
    return ", ".join(parts)
