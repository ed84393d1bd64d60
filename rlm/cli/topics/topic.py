"""`rlm topic`: tiers topics, lists them, and ends their tiering."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from enum import Enum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.named_topic import await_topic
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.invocation.tiering_session import (
    ForceOption,
    end_tiering,
    preview_lines,
    tiering_end_of,
    tiering_of,
)
from rlm.cli.topics import resolve
from rlm.policy.topic.policy_values import delayed_trim_note
from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.disable import TieringEnd
from rlmm.events.policy import AS_MANAGERS_SETTING, CopyLagSince, OutagePolicy, TopicPolicy
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_to_text

_MINUTE_MS = 60_000
_MIB = 1 << 20
_WIDE = 200  # columns of a table in a file or a pipe

_SET_EXAMPLE = "Example: rlm topic set orders --local-retention-ms 3600000 --config rlm.properties"
_LIST_EXAMPLE = "Example: rlm topic list --json --config rlm.properties"
_DISABLE_EXAMPLE = "Example: rlm topic disable orders --dry-run --config rlm.properties"

_TopicArgument = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]
_TotalMs = Annotated[int | None, typer.Option(help="Total retention in ms; -1 is unlimited.")]
_TotalBytes = Annotated[
    int | None, typer.Option(help="Total retention of each partition in bytes; -1 is unlimited.")
]
_LocalMs = Annotated[
    int | None,
    typer.Option(
        help="Retention on the broker's disk in ms; -2 is the total retention, -1 unlimited."
    ),
]
_LocalBytes = Annotated[
    int | None,
    typer.Option(
        help="Retention on the broker's disk in bytes of each partition; -2 is the total "
        "retention, -1 unlimited."
    ),
]


_LagMs = Annotated[
    int | None,
    typer.Option(
        help="Copy a rolled segment once its newest record is this old, in ms; 0 is at once, -1 "
        "the local retention. With both copy lags, the first that is over decides."
    ),
]
_LagBytes = Annotated[
    int | None,
    typer.Option(
        help="Copy a rolled segment once newer segments have this size in bytes; 0 is at once, -1 "
        "the local retention."
    ),
]
_OffloadMinutes = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="--copy-lag-ms in minutes, counted from when the broker rolled the segment (PIP-17).",
    ),
]
_OffloadMib = Annotated[int | None, typer.Option(min=0, help="--copy-lag-bytes in MiB (PIP-17).")]


_DeletionLagMs = Annotated[
    int | None,
    typer.Option(
        help="How long a stored segment stays on the broker's disk, in ms (PIP-17's deletion lag). "
        "-1 is the managers' remote.local.trim.deletion.lag.ms."
    ),
]


class _OutageChoice(Enum):
    HOLD = "hold"
    SHED_OLDEST = "shed"


_Outage = Annotated[
    _OutageChoice | None,
    typer.Option(
        help="What managers do when the store is unreachable and the broker's disk fills. hold "
        "keeps unstored data. **Data loss:** shed gives up the oldest of it, and records the gap."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    topic = typer.Typer(
        help="Tier topics, change their policies, end tiering.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    topic.command("set", help=_set.__doc__, epilog=_SET_EXAMPLE)(_set)
    topic.command("list", help=_list.__doc__, epilog=_LIST_EXAMPLE)(_list)
    topic.command("disable", help=_disable.__doc__, epilog=_DISABLE_EXAMPLE)(_disable)
    resolve.add_to(topic)
    app.add_typer(topic, name="topic")


@with_cluster_options
def _set(  # noqa: PLR0913 - one for each flag
    topic: _TopicArgument,
    *,
    local_retention_ms: _LocalMs = None,
    local_retention_bytes: _LocalBytes = None,
    retention_ms: _TotalMs = None,
    retention_bytes: _TotalBytes = None,
    copy_lag_ms: _LagMs = None,
    copy_lag_bytes: _LagBytes = None,
    offload_time_in_minutes: _OffloadMinutes = None,
    offload_size_in_mb: _OffloadMib = None,
    outage_policy: _Outage = None,
    local_deletion_lag_ms: _DeletionLagMs = None,
    cluster: ClusterOptions,
) -> None:
    """Tier a topic, or change its policy.

    Options that you do not give keep their values. Returns when the policy is active.
    """
    flags = PolicyFlags(
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        local_retention_ms=local_retention_ms,
        local_retention_bytes=local_retention_bytes,
        copy_lag_ms=_one_of(copy_lag_ms, offload_time_in_minutes, _MINUTE_MS, "time-in-minutes"),
        copy_lag_since=_since(copy_lag_ms, offload_time_in_minutes),
        copy_lag_bytes=_one_of(copy_lag_bytes, offload_size_in_mb, _MIB, "size-in-mb"),
        outage_policy=None if outage_policy is None else OutagePolicy[outage_policy.name],
        local_deletion_lag_ms=local_deletion_lag_ms,
    )
    with open_session(
        cluster.config, timeout_ms=cluster.timeout_ms, create_metadata_topic=True
    ) as session:
        _await(session, topic)
        policy = tiering_of(session).enable(topic, flags, timeout_ms=session.remaining_ms())
    with printing():
        typer.echo(_line(policy))
        note = delayed_trim_note(policy, cluster.config.manager.trim_min_age_ms)
        if note is not None:
            typer.echo(f"note: {note}", err=True)


@with_cluster_options
def _list(
    *,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """List topics that are or were tiered, with their policies."""
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        policies = sorted(session.metadata.topic_policies(), key=lambda each: each.topic)
    with printing():
        if as_json:
            typer.echo(json.dumps({"topics": [_as_json(policy) for policy in policies]}, indent=2))
        else:
            console = Console(width=None if sys.stdout.isatty() else _WIDE, markup=False)
            console.print(_table(policies))


@with_cluster_options
def _disable(
    topic: _TopicArgument,
    *,
    delete_remote: Annotated[
        bool, typer.Option("--delete-remote", help="**Data loss:** delete stored data, too.")
    ] = False,
    force: ForceOption = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be restored and lost; change nothing."),
    ] = False,
    cluster: ClusterOptions,
) -> None:
    """End a topic's tiering, and restore its own retention.

    The managers store all rolled segments before. Stored data stays readable without
    --delete-remote. Without --force, the command fails if records would be lost.
    """
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        _await(session, topic)
        ending = tiering_end_of(session, client)
        if dry_run:
            _show_preview(ending, topic, session.remaining_ms())
            return
        policy = end_tiering(session, ending, topic, delete_remote=delete_remote, force=force)
    with printing():
        typer.echo(_line(policy))


def _one_of(value: int | None, other: int | None, factor: int, name: str) -> int | None:
    """Return a lag that is given in its own unit or in PIP-17's."""
    if value is not None and other is not None:
        raise InvalidConfigError(f"--offload-{name} is the same setting as a copy lag: give one")
    return value if other is None else other * factor


def _since(lag_ms: int | None, minutes: int | None) -> CopyLagSince | None:
    """Return the start of the given lag in time; None if none was given."""
    if minutes is not None:
        return CopyLagSince.ROLL
    return None if lag_ms is None else CopyLagSince.NEWEST_RECORD


def _show_preview(ending: TieringEnd, topic: str, timeout_ms: int) -> None:
    policy, risks = ending.preview(topic, timeout_ms=timeout_ms)
    with printing():
        for line in preview_lines(policy, risks):
            typer.echo(line)


def _await(session: CommandSession, topic: str) -> None:
    timeout_ms = session.remaining_ms()
    with reaching_cluster(session.config):
        await_topic(session.topics, session.clock, topic, timeout_ms=timeout_ms)


def _line(policy: TopicPolicy) -> str:
    texts = [
        f"{policy.topic}: {policy.state.name}",
        f"retention.ms={policy.retention_ms} retention.bytes={policy.retention_bytes}",
        f"local.retention.ms={policy.local_retention_ms}",
        f"local.retention.bytes={policy.local_retention_bytes}",
    ]
    if policy.copy_lag_ms and policy.copy_lag_bytes:
        texts.append(f"remote.copy.lag.ms={policy.copy_lag_ms}")
        texts.append(f"remote.copy.lag.bytes={policy.copy_lag_bytes}")
        if policy.copy_lag_since is CopyLagSince.ROLL:
            texts.append("remote.copy.lag.since=roll")
    if policy.outage_policy is not OutagePolicy.HOLD:
        texts.append(f"outage={_OutageChoice[policy.outage_policy.name].value}")
    if policy.local_deletion_lag_ms != AS_MANAGERS_SETTING:
        texts.append(f"local.deletion.lag.ms={policy.local_deletion_lag_ms}")
    return " ".join(texts)


def _as_json(policy: TopicPolicy) -> Mapping[str, object]:
    return {
        "topic": policy.topic,
        "topic_id": id_to_text(policy.topic_id),
        "state": policy.state.name,
        "retention_ms": policy.retention_ms,
        "retention_bytes": policy.retention_bytes,
        "local_retention_ms": policy.local_retention_ms,
        "local_retention_bytes": policy.local_retention_bytes,
        "copy_lag_ms": policy.copy_lag_ms,
        "copy_lag_bytes": policy.copy_lag_bytes,
        "copy_lag_since": policy.copy_lag_since.name.lower(),
        "outage_policy": _OutageChoice[policy.outage_policy.name].value,
        "local_deletion_lag_ms": policy.local_deletion_lag_ms,
        "originals": {each.name: each.value for each in policy.originals},
        "delete_remote": policy.delete_remote,
    }


def _table(policies: Iterable[TopicPolicy]) -> Table:
    table = Table("topic", "id", "state", box=None, pad_edge=False)
    for name in ("retention.ms", "retention.bytes", "local.ms", "local.bytes"):
        table.add_column(name, justify="right")
    table.add_column("originals")
    for policy in policies:
        originals = (f"{o.name}={'-' if o.value is None else o.value}" for o in policy.originals)
        table.add_row(
            policy.topic,
            id_to_text(policy.topic_id),
            policy.state.name,
            str(policy.retention_ms),
            str(policy.retention_bytes),
            str(policy.local_retention_ms),
            str(policy.local_retention_bytes),
            " ".join(originals),
        )
    return table
