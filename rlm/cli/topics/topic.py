"""`rlm topic`: tiers topics, lists them, and ends their tiering."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import Annotated
from uuid import UUID

import typer

from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.named_topic import await_topic, find_topic
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    YesOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.invocation.shorter_retention import confirm_expiry, expiry_lines
from rlm.cli.invocation.tiering_session import (
    ForceOption,
    confirm_end,
    end_tiering,
    preview_lines,
    tiering_end_of,
    tiering_of,
)
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.topics import describe, resolve
from rlm.cli.topics.policy_options import with_policy_options
from rlm.cli.topics.policy_text import policy_json, policy_line, policy_lines
from rlm.policy.topic.policy_values import delayed_trim_note
from rlm.policy.topic.topic_policy import PolicyFlags, deletes_nothing
from rlm.topics.disable import TieringEnd
from rlmm.events.policy import PolicyState, TopicPolicy, topic_policies, topic_policy
from rsm.config.values import require_topic_name
from rsm.segment.errors import InvalidConfigError

_SET_EXAMPLE = "Example: rlm topic set orders --local-retention 1h --config rlm.properties"
_ENABLE_EXAMPLE = "Example: rlm topic enable orders --retention 30d --config rlm.properties"
_ALTER_EXAMPLE = "Example: rlm topic alter orders --local-retention 0 --config rlm.properties"
_LIST_EXAMPLE = "Example: rlm topic list --json --config rlm.properties"
_DISABLE_EXAMPLE = "Example: rlm topic disable orders --dry-run --config rlm.properties"

_TIERED = frozenset({PolicyState.ENABLING, PolicyState.ACTIVE})

_TopicArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The topic.", callback=require_topic_name)
]
_DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Show the policy and the data that it expires; change nothing."),
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


@with_policy_options
@with_cluster_options
def _set(
    topic: _TopicArgument,
    *,
    flags: PolicyFlags,
    dry_run: _DryRun = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
) -> None:
    """Tier a topic, or change its policy.

    **Data loss:** if the total retention becomes shorter, managers delete older data.

    Settings that you do not give keep their values. The command returns when the policy is active.
    """
    _activate(topic, flags, cluster, dry_run=dry_run, yes=yes)


@with_policy_options
@with_cluster_options
def _enable(
    topic: _TopicArgument,
    *,
    flags: PolicyFlags,
    dry_run: _DryRun = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
) -> None:
    """Tier a topic that is not tiered yet.

    **Data loss:** if the total retention is shorter than before, managers delete older data.

    The command returns when the policy is active. It also completes an earlier, unfinished run.
    """

    def check(current: TopicPolicy | None) -> None:
        if current is not None and current.state is PolicyState.ACTIVE:
            raise InvalidConfigError(
                "cannot enable tiering: the topic is already tiered",
                topic=topic,
                advice="Change its policy with `rlm topic alter`",
            )

    _activate(topic, flags, cluster, check, dry_run=dry_run, yes=yes)


@with_policy_options
@with_cluster_options
def _alter(
    topic: _TopicArgument,
    *,
    flags: PolicyFlags,
    dry_run: _DryRun = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
) -> None:
    """Change the policy of a tiered topic.

    **Data loss:** if the total retention becomes shorter, managers delete older data.

    Settings that you do not give keep their values. The command returns when the policy is active.
    """
    if flags == PolicyFlags():
        raise InvalidConfigError(
            "cannot change the policy: no setting is given", topic=topic, advice="Give an option"
        )

    def check(current: TopicPolicy | None) -> None:
        if current is None or current.state not in _TIERED:
            raise InvalidConfigError(
                "cannot change the policy: the topic is not tiered",
                topic=topic,
                advice="Tier it with `rlm topic enable`",
            )

    _activate(topic, flags, cluster, check, dry_run=dry_run, yes=yes)


def _activate(
    topic: str,
    flags: PolicyFlags,
    cluster: ClusterOptions,
    check: Callable[[TopicPolicy | None], None] = lambda _: None,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Activate or preview a policy, and print it; `check` raises if the current one forbids it."""
    with open_session(
        cluster.config, timeout_ms=cluster.timeout_ms, create_metadata_topic=not dry_run
    ) as session:
        _await(session, topic)
        topic_id = find_topic(session.topics.view((topic,)), topic).topic_id
        current = topic_policy(session.metadata, topic_id)
        check(current)
        if dry_run:
            policy, expiring = preview_policy(session, topic, flags, current)
        else:
            policy, expiring = set_policy(session, topic, flags, current, yes=yes), ()
    with printing():
        print_lines([("would be " if dry_run else "") + policy_line(policy), *expiring])
        note = delayed_trim_note(policy, cluster.config.manager.trim_min_age_ms)
        if note is not None:
            typer.echo(f"note: {note}", err=True)


def preview_policy(
    session: CommandSession, topic: str, flags: PolicyFlags, current: TopicPolicy | None
) -> tuple[TopicPolicy, tuple[str, ...]]:
    """Return the policy that `flags` would set, and lines about the resulting expiry."""
    wanted = tiering_of(session).preview(topic, flags, timeout_ms=session.remaining_ms())
    unlimited: tuple[UUID, ...] = ()
    if current is None and deletes_nothing(session.topics.on_replicas(topic).leader_configs):
        unlimited = (wanted.topic_id,)
    return wanted, tuple(expiry_lines(session, ((current, wanted),), unlimited=unlimited))


def set_policy(
    session: CommandSession,
    topic: str,
    flags: PolicyFlags,
    current: TopicPolicy | None,
    *,
    yes: bool,
) -> TopicPolicy:
    """Activate the policy. Asks first if it shortens the topic's retention, unless `yes`."""
    asked = session
    if not yes:
        _, expiring = preview_policy(session, topic, flags, current)
        asked = confirm_expiry(session, expiring, yes=yes)
    return tiering_of(asked).enable(topic, flags, timeout_ms=asked.remaining_ms())


@with_cluster_options
def _list(
    *,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """List topics that are or were tiered, with their policies."""
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        policies = sorted(topic_policies(session.metadata), key=lambda each: each.topic)
    with printing():
        if as_json:
            typer.echo(
                json.dumps({"topics": [policy_json(policy) for policy in policies]}, indent=2)
            )
        else:
            print_lines(policy_lines(policies, width=output_width()))


@with_cluster_options
@deletes("delete_remote", "force")
def _disable(
    topic: _TopicArgument,
    *,
    delete_remote: Annotated[
        bool, typer.Option("--delete-remote", help="**Data loss:** also delete the stored data.")
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

    First, the managers store all rolled segments. Without --delete-remote, stored data stays
    readable. Without --force, the command fails if records would be lost.
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
        asked = confirm_end(session, topic, delete_remote=delete_remote, force=force, yes=yes)
        policy = end_tiering(asked, ending, topic, delete_remote=delete_remote, force=force)
    with printing():
        print_lines([policy_line(policy)])


def _show_preview(ending: TieringEnd, topic: str, timeout_ms: int) -> None:
    policy, risks = ending.preview(topic, timeout_ms=timeout_ms)
    with printing():
        print_lines(preview_lines(policy, risks))


def _await(session: CommandSession, topic: str) -> None:
    timeout_ms = session.remaining_ms()
    with reaching_cluster(session.config):
        await_topic(session.topics, session.clock, topic, timeout_ms=timeout_ms)
