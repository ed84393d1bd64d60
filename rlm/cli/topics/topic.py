"""`rlm topic`: tiers topics, lists them, and ends their tiering."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from inspect import signature
from typing import Annotated, Any

import typer
from rich.console import Console

from rlm.cli.invocation.amount_options import durations, sizes
from rlm.cli.invocation.confirmation import YesOption, require_consent
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.named_topic import await_topic, find_topic
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
    confirm_end,
    end_tiering,
    preview_lines,
    tiering_end_of,
    tiering_of,
)
from rlm.cli.topics import describe, resolve
from rlm.cli.topics.policy_text import policy_json, policy_line, policy_table
from rlm.policy.topic.policy_values import delayed_trim_note
from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.disable import TieringEnd
from rlmm.events.policy import (
    CopyLagSince,
    OutagePolicy,
    PolicyState,
    TopicPolicy,
)
from rsm.segment.errors import InvalidConfigError

_MINUTE_MS = 60_000
_MIB = 1 << 20
_WIDE = 200  # columns of a table in a file or a pipe

_SET_EXAMPLE = "Example: rlm topic set orders --local-retention 1h --config rlm.properties"
_ENABLE_EXAMPLE = "Example: rlm topic enable orders --retention 30d --config rlm.properties"
_ALTER_EXAMPLE = "Example: rlm topic alter orders --local-retention 0 --config rlm.properties"
_LIST_EXAMPLE = "Example: rlm topic list --json --config rlm.properties"
_DISABLE_EXAMPLE = "Example: rlm topic disable orders --dry-run --config rlm.properties"

_TIERED = frozenset({PolicyState.ENABLING, PolicyState.ACTIVE})

_TopicArgument = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]
_TotalMs = Annotated[
    int | None,
    typer.Option(
        "--retention-ms",
        "--retention",
        parser=durations(special=[-1]),
        metavar="DURATION",
        help="Total retention, such as 30d; without a unit in ms. -1 is unlimited.",
    ),
]
_TotalBytes = Annotated[
    int | None,
    typer.Option(
        parser=sizes(special=[-1]),
        metavar="SIZE",
        help="Total retention of each partition, such as 50GiB; without a unit in bytes. -1 is "
        "unlimited.",
    ),
]
_LocalMs = Annotated[
    int | None,
    typer.Option(
        "--local-retention-ms",
        "--local-retention",
        parser=durations(special=[-1, -2]),
        metavar="DURATION",
        help="Retention on the broker's disk, such as 1h; without a unit in ms. -2 is the total "
        "retention, -1 unlimited.",
    ),
]
_LocalBytes = Annotated[
    int | None,
    typer.Option(
        parser=sizes(special=[-1, -2]),
        metavar="SIZE",
        help="Retention on the broker's disk of each partition; without a unit in bytes. -2 is "
        "the total retention, -1 unlimited.",
    ),
]
_LagMs = Annotated[
    int | None,
    typer.Option(
        "--copy-lag-ms",
        "--copy-lag",
        parser=durations(special=[-1]),
        metavar="DURATION",
        help="Copy a rolled segment once its newest record is this old; without a unit in ms. 0 is "
        "at once, -1 the local retention. With both copy lags, the first that is over decides.",
    ),
]
_LagBytes = Annotated[
    int | None,
    typer.Option(
        parser=sizes(special=[-1]),
        metavar="SIZE",
        help="Copy a rolled segment once newer segments have this size; without a unit in bytes. 0 "
        "is at once, -1 the local retention.",
    ),
]
_OffloadMinutes = Annotated[
    int | None,
    typer.Option(
        parser=durations(unit_ms=_MINUTE_MS),
        metavar="DURATION",
        help="--copy-lag-ms counted from when the broker rolled the segment (PIP-17); without a "
        "unit in minutes.",
    ),
]
_OffloadMib = Annotated[
    int | None,
    typer.Option(
        parser=sizes(unit_bytes=_MIB),
        metavar="SIZE",
        help="--copy-lag-bytes (PIP-17); without a unit in MiB.",
    ),
]
_DeletionLagMs = Annotated[
    int | None,
    typer.Option(
        "--local-deletion-lag-ms",
        "--deletion-lag",
        parser=durations(special=[-1]),
        metavar="DURATION",
        help="How long a stored segment stays on the broker's disk (PIP-17's deletion lag); "
        "without a unit in ms. -1 is the managers' remote.local.trim.deletion.lag.ms.",
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
    topic.command("enable", help=_enable.__doc__, epilog=_ENABLE_EXAMPLE)(_enable)
    topic.command("alter", help=_alter.__doc__, epilog=_ALTER_EXAMPLE)(_alter)
    describe.add_to(topic)
    topic.command("list", help=_list.__doc__, epilog=_LIST_EXAMPLE)(_list)
    topic.command("disable", help=_disable.__doc__, epilog=_DISABLE_EXAMPLE)(_disable)
    resolve.add_to(topic)
    app.add_typer(topic, name="topic")


def _policy_flags(  # noqa: PLR0913 - one for each option
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
) -> PolicyFlags:
    return PolicyFlags(
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


def _with_policy_options(function: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `flags` of a command by the options of a policy."""
    own = signature(function, eval_str=True)
    shared = signature(_policy_flags, eval_str=True).parameters
    shown = [
        each
        for name, parameter in own.parameters.items()
        for each in (shared.values() if name == "flags" else (parameter,))
    ]

    def command(**arguments: Any) -> None:  # noqa: ANN401 - what the command takes
        flags = _policy_flags(**{name: arguments.pop(name) for name in shared})
        function(flags=flags, **arguments)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]  # typer asks
    command.__annotations__ = {each.name: each.annotation for each in shown}
    return command


@_with_policy_options
@with_cluster_options
def _set(topic: _TopicArgument, *, flags: PolicyFlags, cluster: ClusterOptions) -> None:
    """Tier a topic, or change its policy.

    Options that you do not give keep their values. Returns when the policy is active.
    """
    _activate(topic, flags, cluster)


@_with_policy_options
@with_cluster_options
def _enable(topic: _TopicArgument, *, flags: PolicyFlags, cluster: ClusterOptions) -> None:
    """Tier a topic that is not tiered yet.

    Returns when the policy is active. The command also completes an earlier one that did not end.
    """

    def check(current: TopicPolicy | None) -> None:
        if current is not None and current.state is PolicyState.ACTIVE:
            raise InvalidConfigError(
                "topic is tiered already: use `rlm topic alter` to change its policy", topic=topic
            )

    _activate(topic, flags, cluster, check)


@_with_policy_options
@with_cluster_options
def _alter(topic: _TopicArgument, *, flags: PolicyFlags, cluster: ClusterOptions) -> None:
    """Change the policy of a tiered topic.

    Options that you do not give keep their values. Returns when the policy is active.
    """
    if flags == PolicyFlags():
        raise InvalidConfigError("nothing to change: give an option", topic=topic)

    def check(current: TopicPolicy | None) -> None:
        if current is None or current.state not in _TIERED:
            raise InvalidConfigError(
                "topic is not tiered: use `rlm topic enable` to tier it", topic=topic
            )

    _activate(topic, flags, cluster, check)


def _activate(
    topic: str,
    flags: PolicyFlags,
    cluster: ClusterOptions,
    check: Callable[[TopicPolicy | None], None] = lambda _: None,
) -> None:
    """Activate a policy if `check` accepts the present one, and print it."""
    with open_session(
        cluster.config, timeout_ms=cluster.timeout_ms, create_metadata_topic=True
    ) as session:
        _await(session, topic)
        topic_id = find_topic(session.topics.view((topic,)), topic).topic_id
        check(session.metadata.topic_policy(topic_id))
        policy = tiering_of(session).enable(topic, flags, timeout_ms=session.remaining_ms())
    with printing():
        typer.echo(policy_line(policy))
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
            typer.echo(
                json.dumps({"topics": [policy_json(policy) for policy in policies]}, indent=2)
            )
        else:
            console = Console(width=None if sys.stdout.isatty() else _WIDE, markup=False)
            console.print(policy_table(policies))


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
    yes: YesOption = False,
    cluster: ClusterOptions,
) -> None:
    """End a topic's tiering, and restore its own retention.

    The managers store all rolled segments before. Stored data stays readable without
    --delete-remote. Without --force, the command fails if records would be lost.
    """
    if delete_remote:
        require_consent(yes=yes, dry_run=dry_run)
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        _await(session, topic)
        ending = tiering_end_of(session, client)
        if dry_run:
            _show_preview(ending, topic, session.remaining_ms())
            return
        asked = confirm_end(session, topic, delete_remote=delete_remote, force=force, yes=yes)
        policy = end_tiering(asked, ending, topic, delete_remote=delete_remote, force=force)
    with printing():
        typer.echo(policy_line(policy))


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
