"""`rlm policy`: sets, lists, shows and deletes the policies of patterns, and the default."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.managers import live_managers, managers_defaults
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    YesOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import open_session
from rlm.cli.invocation.shorter_retention import confirm_expiry
from rlm.cli.policies.level_changes import (
    apply_change,
    effects_of,
    find_change,
    show_change,
)
from rlm.cli.policies.level_list import levels_json, levels_lines, manager_files
from rlm.cli.policies.level_text import (
    effect_json,
    effect_lines,
    level_json,
    level_lines,
    level_name,
)
from rlm.cli.terminal.lines import print_lines
from rlm.cli.topics.policy_options import with_policy_options
from rlm.policy.topic.levels import check_pattern, levels_of
from rlm.policy.topic.topic_policy import PolicyFlags, changed_level, check_level
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel, policy_levels
from rsm.program.confirmation import confirm
from rsm.segment.errors import InvalidConfigError, NotFoundError

_SET_EXAMPLE = "Example: rlm policy set 'orders-*' --retention 30d --config rlm.properties"
_LIST_EXAMPLE = "Example: rlm policy list --json --config rlm.properties"
_DESCRIBE_EXAMPLE = "Example: rlm policy describe 'orders-*' --config rlm.properties"
_DELETE_EXAMPLE = "Example: rlm policy delete 'orders-*' --dry-run --config rlm.properties"

_Pattern = Annotated[
    str | None,
    typer.Argument(
        metavar="PATTERN",
        help="Pattern of topic names; * matches any characters, ? one. Quote it for the shell.",
    ),
]
_Default = Annotated[
    bool, typer.Option("--default", help="Use the default of all topics, instead of a pattern.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    policy = typer.Typer(
        help="Set policies of many topics, by patterns and a default.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    policy.command("set", help=_set.__doc__, epilog=_SET_EXAMPLE)(_set)
    policy.command("list", help=_list.__doc__, epilog=_LIST_EXAMPLE)(_list)
    policy.command("describe", help=_describe.__doc__, epilog=_DESCRIBE_EXAMPLE)(_describe)
    policy.command("delete", help=_delete.__doc__, epilog=_DELETE_EXAMPLE)(_delete)
    app.add_typer(policy, name="policy")


@with_policy_options
@with_cluster_options
def _set(
    pattern: _Pattern = None,
    *,
    is_default: _Default = False,
    flags: PolicyFlags,
    dry_run: _DryRun = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Set the policy of a pattern of topics, or the default.

    **Data loss:** if the total retention of topics becomes shorter, managers delete older data.

    Managers tier each topic that a pattern matches, including topics created later. The default
    tiers no topic. A topic's own setting takes precedence over patterns, a more specific pattern
    over less specific ones, and patterns over the default. Settings whose options you omit keep
    their values. Shows what managers then do with topics.
    """
    name = _named(pattern, is_default=is_default)
    with open_session(
        cluster.config, timeout_ms=cluster.timeout_ms, create_metadata_topic=not dry_run
    ) as session:
        levels = {each.pattern: each for each in policy_levels(session.metadata)}
        level = changed_level(levels.get(name, PolicyLevel(pattern=name)), flags)
        check_level(level, managers_defaults(session))
        levels[name] = level
        change = find_change(session, levels.values())
        if not dry_run:
            apply_change(confirm_expiry(session, change.expiries, yes=yes), change)
    show_change(change, dry_run=dry_run, as_json=as_json)


@with_cluster_options
def _list(*, cluster: ClusterOptions, as_json: JsonOption = False) -> None:
    """List the policies of patterns, the default, and managers.

    Managers register the settings that their configuration files give topics. If the files differ,
    shows the most frequent value, and the brokers whose managers have another value.
    """
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        levels = policy_levels(session.metadata)
        with reaching_cluster(session.config):
            brokers = session.bootstrap.view(()).brokers
        files = manager_files(brokers, live_managers(session.metadata, session.clock))
    with printing():
        if as_json:
            typer.echo(json.dumps(levels_json(levels, files), indent=2))
            return
        print_lines(levels_lines(levels, files))


@with_cluster_options
def _describe(
    pattern: _Pattern = None,
    *,
    is_default: _Default = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Show the policy of a pattern, and the topics that match.

    If a topic does not follow the policy, shows the reason, such as that the topic is compacted.
    The command `rlm topic describe` shows the effective values of a topic.
    """
    name = _named(pattern, is_default=is_default)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        levels = policy_levels(session.metadata)
        level = _existing(name, levels)
        effects = [each for each in effects_of(session, levels) if levels_of(each.topic, (level,))]
    with printing():
        if as_json:
            topics = [effect_json(each) for each in effects]
            typer.echo(json.dumps({**level_json(level), "topics": topics}, indent=2))
            return
        print_lines(level_lines(level))
        for effect in effects:
            print_lines(effect_lines(effect))
        if not effects:
            typer.echo("note: no topic follows this policy yet", err=True)


@with_cluster_options
@deletes()
def _delete(
    pattern: _Pattern = None,
    *,
    is_default: _Default = False,
    dry_run: _DryRun = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Delete the policy of a pattern, or the default.

    **Data loss:** if the retention becomes shorter, managers delete older data.

    Topics stay tiered, and inherit the policy's settings from the next level instead. If no level
    gives a total retention, the topic gets back the one from before it was tiered.
    """
    name = _named(pattern, is_default=is_default)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        levels = policy_levels(session.metadata)
        _existing(name, levels)
        change = find_change(session, [each for each in levels if each.pattern != name])
        if not dry_run:
            changing_count = sum(each.is_change for each in change.effects)
            question = f"Delete the {level_name(name)} (topics that change: {changing_count})?"
            remaining_ms = session.remaining_ms()
            confirm("\n".join([*change.expiries, question]), yes=yes)
            apply_change(session.with_remaining(remaining_ms), change)
    show_change(change, dry_run=dry_run, as_json=as_json)


def _named(pattern: str | None, *, is_default: bool) -> str:
    """Return the user's pattern; that of the default if `is_default`.

    Raises InvalidConfigError if the pattern is invalid, or if the user gave both or neither.
    """
    if is_default and pattern is not None:
        raise InvalidConfigError(
            "a pattern and --default exclude each other", pattern=pattern, advice="Give one"
        )
    if is_default:
        return DEFAULT_LEVEL
    if pattern is None:
        raise InvalidConfigError(
            "cannot select a policy: neither a pattern nor --default is given", advice="Give one"
        )
    check_pattern(pattern)
    return pattern


def _existing(name: str, levels: tuple[PolicyLevel, ...]) -> PolicyLevel:
    found = next((each for each in levels if each.pattern == name), None)
    if found is None:
        raise NotFoundError(
            "cannot find the policy: the cluster has no such policy",
            level=level_name(name),
            advice="`rlm policy list` shows the policies",
        )
    return found
