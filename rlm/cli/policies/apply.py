"""`rlm apply`: sets the policies that a file contains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.managers import managers_defaults
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    YesOption,
    with_cluster_options,
)
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.invocation.shorter_retention import confirm_expiry
from rlm.cli.policies.level_changes import ShownChange, apply_change, find_change, show_change
from rlm.cli.policies.level_text import level_name
from rlm.cli.policies.policies_file import (
    DEFAULT_KEY,
    PATTERNS_KEY,
    Policies,
    read_policies,
)
from rlm.policy.topic.topic_policy import check_level
from rlmm.events.policy import PolicySetting, PolicyState, TopicPolicy, topic_policies
from rlmm.events.policy_level import PolicyLevel, policy_levels
from rsm.program.confirmation import confirm
from rsm.segment.errors import InvalidConfigError

_TIERED = frozenset({PolicyState.ENABLING, PolicyState.ACTIVE})
_EXAMPLE = "Example: rlm apply -f policies.yaml --dry-run --config rlm.properties"

_File = Annotated[
    Path, typer.Option("--file", "-f", metavar="FILE", help="YAML file with the policies.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("apply", epilog=_EXAMPLE)(_apply)


@with_cluster_options
@deletes("prune")
def _apply(
    *,
    file: _File,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Delete each pattern's policy, and the default, unless the file contains it. "
            "Topics stay tiered and keep their own settings. The file must contain `patterns` or "
            "`default`.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Set the policies of patterns and topics from a file.

    **Data loss:** if the retention of topics becomes shorter, managers delete older data.

    A policy in the file replaces the whole policy of its pattern or topic. But a topic keeps its
    own total retention if the file does not set it. Tiers the file's topics. Shows the difference,
    and what managers then do with topics. If a key is unknown, reports its line and column, and
    changes nothing. docs/policies.schema.json is the file's JSON schema.
    """
    given = read_policies(file)
    if prune:
        require_prunable(given, file)
    with open_session(
        cluster.config, timeout_ms=cluster.timeout_ms, create_metadata_topic=not dry_run
    ) as session:
        present = {each.pattern: each for each in policy_levels(session.metadata)}
        wanted = {} if prune else dict(present)
        for level in given.levels:
            check_level(level, managers_defaults(session))
            wanted[level.pattern] = _with_unknown_fields(level, present.get(level.pattern))
        change = find_change(session, wanted.values(), given.topics)
        if prune:
            named = {each.topic for each in given.topics}
            notes = unnamed_topics(topic_policies(session.metadata), named)
            change = replace(change, notes=(*change.notes, *notes))
        removed = [level_name(each.pattern) for each in change.levels if each.after is None]
        if not dry_run:
            apply_change(_confirmed(session, change, removed, yes=yes), change)
    show_change(change, dry_run=dry_run, as_json=as_json)


def require_prunable(given: Policies, file: Path) -> None:
    """Raise InvalidConfigError if the file has neither `patterns` nor `default`."""
    if not given.names_levels:
        raise InvalidConfigError(
            f"cannot prune: the file has neither `{PATTERNS_KEY}` nor `{DEFAULT_KEY}`, so --prune "
            "would delete all policies",
            file=file,
            advice=f"Give another file, or write `{PATTERNS_KEY}: {{}}` to delete all policies",
        )


def _confirmed(
    session: CommandSession, change: ShownChange, removed: Sequence[str], *, yes: bool
) -> CommandSession:
    """Ask before levels or data are deleted; return the session to continue with."""
    if not removed:
        return confirm_expiry(session, change.expiries, yes=yes)
    remaining_ms = session.remaining_ms()
    question = f"Delete the policies of {', '.join(removed)}?"
    confirm("\n".join([*change.expiries, question]), yes=yes)
    return session.with_remaining(remaining_ms)


def unnamed_topics(policies: Iterable[TopicPolicy], named: Collection[str]) -> Iterator[str]:
    """Yield a note for each tiered topic with its own settings, unless the file names it."""
    for policy in sorted(policies, key=lambda each: each.topic):
        own = [each.field for each in PolicySetting if each not in policy.inherited]
        if own and policy.topic not in named and policy.state in _TIERED:
            names = ", ".join(own)
            yield f"topic {policy.topic} is not in the file and keeps its own settings: {names}"


def _with_unknown_fields(level: PolicyLevel, present: PolicyLevel | None) -> PolicyLevel:
    """Return the level with those fields of the present level that a newer version wrote."""
    return level if present is None else replace(level, unknown_fields=present.unknown_fields)
