"""Finds, writes and shows changes of policy levels, and their effects on topics."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import typer

from rlm.cli.invocation.managers import managers_defaults
from rlm.cli.invocation.options import reaching_cluster
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession
from rlm.cli.invocation.shorter_retention import expiry_lines
from rlm.cli.invocation.tiering_session import recalling, tiering_of
from rlm.cli.policies.level_text import (
    LevelChange,
    change_lines,
    changes_json,
    effect_lines,
    level_name,
)
from rlm.cli.policies.policies_file import TopicEntry
from rlm.cli.terminal.lines import print_lines
from rlm.policy.topic.level_combinations import check_combinations
from rlm.policy.topic.levels import LevelIndex
from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.level_effects import LevelEffects, TopicEffect
from rlm.topics.policy_writer import PolicyWriter
from rlm.worker.cluster_access import own_topics
from rlmm.events.policy import topic_policies
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel, policy_levels
from rsm.segment.errors import FencedError, InvalidConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """Represents a change of levels and of topics' own settings, and its effects on topics.

    `topics` maps each named topic whose policy changes to its flags. `expiries` are lines about
    the topics whose total retention becomes shorter.
    """

    levels: tuple[LevelChange, ...]
    effects: tuple[TopicEffect, ...]
    notes: tuple[str, ...]
    topics: Mapping[str, PolicyFlags] = field(default_factory=dict)
    expiries: tuple[str, ...] = ()


def effects_of(
    session: CommandSession,
    levels: Sequence[PolicyLevel],
    named: Sequence[TopicEntry] = (),
) -> tuple[TopicEffect, ...]:
    """Return the effects of these levels on the cluster's topics, by ascending name.

    `named` are topics whose own settings change, too. Raises InvalidConfigError if a named topic
    does not exist.
    """
    policies = {each.topic_id: each for each in topic_policies(session.metadata)}
    managers = managers_defaults(session)
    with recalling(session) as recall, reaching_cluster(session.config):
        effects = LevelEffects(
            session.topics,
            recall=recall,
            own_topics=own_topics(session.config.metadata, session.config.manager),
            managers=managers,
        )
        view = session.topics.view(None)
        topics = sorted(view.topics.values(), key=lambda each: each.topic)
        _require_existing(named, {each.topic for each in topics})
        flags = {each.topic: each.flags for each in named}
        return effects.of(topics, levels, policies, node_id=min(view.brokers), named=flags)


def _require_existing(named: Iterable[TopicEntry], existing: Collection[str]) -> None:
    for each in named:
        if each.topic not in existing:
            raise InvalidConfigError(
                "cannot set the topic's own settings: the topic does not exist",
                topic=each.topic,
                line=each.line,
                advice="Create it first, or give its name below `patterns`",
            )


def _require_accepted(named: Iterable[TopicEntry], effects: Iterable[TopicEffect]) -> None:
    obstacles = {each.topic: each.obstacle for each in effects if each.is_refused}
    for entry in named:
        if entry.topic in obstacles:
            raise InvalidConfigError(
                "cannot set the topic's own settings, so nothing was changed",
                topic=entry.topic,
                line=entry.line,
                reason=obstacles[entry.topic],
                advice="Change the topic, or remove its entry",
            )


def find_change(
    session: CommandSession, wanted: Iterable[PolicyLevel], named: Sequence[TopicEntry] = ()
) -> ShownChange:
    """Return the difference between the present levels and `wanted`.

    `wanted` are all levels after the change. `named` are topics whose own settings change, too.
    Raises InvalidConfigError if a named topic does not exist or cannot have its settings, or if the
    wanted levels contradict each other.
    """
    before = {each.pattern: each for each in policy_levels(session.metadata)}
    after = {each.pattern: each for each in wanted}
    if before != after:
        check_combinations(before.values(), after.values(), managers_defaults(session))
    changes = tuple(
        LevelChange(pattern=pattern, before=before.get(pattern), after=after.get(pattern))
        for pattern in sorted(before.keys() | after.keys())
        if before.get(pattern) != after.get(pattern)
    )
    effects = effects_of(session, tuple(after.values()), named) if changes or named else ()
    _require_accepted(named, effects)
    following = {each.topic for each in effects if each.is_named and each.is_change}
    return ShownChange(
        topics={each.topic: each.flags for each in named if each.topic in following},
        levels=changes,
        effects=tuple(each for each in effects if each.is_change or each.obstacle),
        notes=tuple(_notes(changes, effects, tuple(after.values()))),
        expiries=tuple(
            expiry_lines(
                session,
                ((each.before, each.after) for each in effects),
                unlimited={each.topic_id for each in effects if each.is_unlimited},
            )
        ),
    )


def _notes(
    changes: Iterable[LevelChange], effects: Sequence[TopicEffect], levels: Sequence[PolicyLevel]
) -> Iterable[str]:
    index = LevelIndex(levels)
    matched = {level.pattern for each in effects for level in index.levels_of(each.topic)}
    for change in changes:
        if change.after is None or change.pattern == DEFAULT_LEVEL:
            continue
        if change.pattern not in matched:
            yield f"{level_name(change.pattern)} matches no topic yet"
    if changes and all(each.pattern == DEFAULT_LEVEL for each in levels):
        yield "no pattern tiers topics: use `rlm topic enable`, or name topics for `rlm apply`"


def _require_unchanged(change: ShownChange, writer: PolicyWriter) -> None:
    """Raise FencedError if another process has changed a policy that this change writes."""
    levels = {each.pattern: each for each in writer.levels()}
    changed = [
        level_name(each.pattern)
        for each in change.levels
        if levels.get(each.pattern) != each.before
    ]
    changed += [
        each.topic
        for each in change.effects
        if each.topic in change.topics and writer.current(each.topic_id) != each.before
    ]
    if changed:
        raise FencedError(
            "cannot change the policies: another process has changed some of them meanwhile",
            changed=",".join(changed),
            advice="Run the command again: it has changed nothing",
        )


def apply_change(session: CommandSession, change: ShownChange) -> None:
    """Write the levels, and then the policies of topics.

    Raises FencedError, with nothing written, if another process has changed one of them meanwhile.
    Raises the errors of `PolicyWriter` and `Tiering.enable`; some policies may then be written.
    """
    writer = PolicyWriter(session.metadata, uuid4)
    _require_unchanged(change, writer)
    for each in change.levels:
        if each.after is None:
            writer.remove_level(each.pattern)
        else:
            writer.write_level(each.after)
    for topic, flags in change.topics.items():
        tiering_of(session).enable(topic, flags, timeout_ms=session.remaining_ms())


def show_change(change: ShownChange, *, dry_run: bool, as_json: bool) -> None:
    """Print a change, for people or as JSON."""
    with printing():
        if as_json:
            document = changes_json(change.levels, change.effects, change.notes, dry_run=dry_run)
            typer.echo(json.dumps(document, indent=2))
            return
        if not change.levels and not change.topics:
            typer.echo("nothing to change")
        for level in change.levels:
            print_lines(change_lines(level))
        for effect in change.effects:
            print_lines(effect_lines(effect))
        print_lines(change.expiries if dry_run else ())
        for note in change.notes:
            typer.echo(f"note: {note}", err=True)
