"""`rlm uninstall`: restores all topics' own retention, so that `rlm` can stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import Annotated
from uuid import uuid4

import typer

from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.options import (
    ClusterOptions,
    YesOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.invocation.tiering_session import (
    ForceOption,
    end_tiering,
    preview_lines,
    settings_text,
    show_progress,
    tiering_end_of,
)
from rlm.cli.terminal.lines import print_lines
from rlm.topics.disable import TieringEnd
from rlm.topics.originals_mirror import drop_ended
from rlm.topics.originals_restore import OriginalsRestore
from rlm.topics.policy_writer import PolicyWriter
from rlm.worker.store_access import open_chunk_storage, open_stored_originals
from rlmm.events.policy import PolicyState, TopicPolicy, topic_policies
from rlmm.events.policy_level import policy_levels
from rsm.program.confirmation import confirm, confirm_on_terminal
from rsm.segment.errors import RetriableError, TieredStorageError

# Until a manager has read that a pattern was removed, it may still tier topics by that pattern.
_LEVELS_APPLY_MS = 5_000


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("uninstall", epilog="Example: rlm uninstall --dry-run --config rlm.properties")(
        _uninstall
    )


@with_cluster_options
@deletes("force")
def _uninstall(
    *,
    force: ForceOption = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be restored and lost; change nothing."),
    ] = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
) -> None:
    """End all topics' tiering, and restore their own retention.

    **Data loss:** with --force, the command gives up records that are not stored. It then also
    restores the retention of topics whose policies were lost with the metadata topic, although it
    does not know their unstored records.

    Removes the policies of patterns, and ends the tiering of each topic as `rlm topic disable`
    does. Stored data stays, and gateways serve it while they run. Let the managers run until the
    command is done: they store what is not stored yet. You can run the command again. Without
    --force, the command loses nothing, so it asks only on a terminal.
    """
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        closing(manager_client(session)) as client,
    ):
        ending = tiering_end_of(session, client)
        ask = partial(_confirmed, session, force=force, yes=yes)
        failed = end_all(session, ending, ask=ask, force=force, dry_run=dry_run)
    if failed:
        raise RetriableError(
            "cannot restore the retention of all topics",
            topics=",".join(failed),
            advice="The lines above say why. Run the command again; --force gives up records that "
            "are not stored",
        )


def end_all(
    session: CommandSession,
    ending: TieringEnd,
    *,
    ask: Callable[[Iterable[TopicPolicy]], CommandSession],
    force: bool,
    dry_run: bool,
) -> list[str]:
    """End all tiering, or with `dry_run` only show it; return the topics that failed.

    `ask` shows the policies and asks the user, before the first change.
    """
    known = _tiered(session)
    policies = _of_existing_topics(session, known)
    asked = session if dry_run else ask(policies)
    removed = _remove_levels(asked, dry_run=dry_run)
    failed = [
        policy.topic
        for policy in policies
        if not _ended(asked, ending, policy, force=force, dry_run=dry_run)
    ]
    if removed:
        show_progress("waiting until managers know that the policies of patterns are removed")
        session.clock.sleep_ms(_LEVELS_APPLY_MS)
    if not dry_run:
        failed += _tiered_meanwhile(asked, known)
    return failed + list(_not_restored(asked, force=force, dry_run=dry_run))


def _confirmed(
    session: CommandSession, policies: Iterable[TopicPolicy], *, force: bool, yes: bool
) -> CommandSession:
    """Ask on a terminal, unless `yes`; return the session to continue with.

    Without a terminal, `force` needs `yes`. Raises the errors of `confirm`.
    """
    remaining_ms = session.remaining_ms()
    topics = ", ".join(policy.topic for policy in policies) or "no topic"
    also = ", and give up records that are not stored in time" if force else ""
    ask = confirm if force else confirm_on_terminal
    ask(f"End the tiering of {topics}{also}?", yes=yes)
    return session.with_remaining(remaining_ms)


def _remove_levels(session: CommandSession, *, dry_run: bool) -> bool:
    """Remove the policies of patterns and the default, so that managers tier no more topics.

    Returns whether it removed any. With `dry_run`, it only shows the policies.
    """
    writer = PolicyWriter(session.metadata, uuid4)
    levels = policy_levels(session.metadata)
    for level in levels:
        if not dry_run:
            writer.remove_level(level.pattern)
        name = level.pattern or "(default)"
        with printing():
            print_lines([f"policy {name}: {'would be removed' if dry_run else 'removed'}"])
    return bool(levels) and not dry_run


def _tiered(session: CommandSession) -> list[TopicPolicy]:
    """Return the policies that replace a topic's own retention."""
    return [p for p in topic_policies(session.metadata) if p.state is not PolicyState.DISABLED]


def _tiered_meanwhile(session: CommandSession, known: Iterable[TopicPolicy]) -> Iterator[str]:
    """Yield topics tiered after the question: the user did not agree to end their tiering."""
    known_ids = {policy.topic_id for policy in known}
    late = [policy for policy in _tiered(session) if policy.topic_id not in known_ids]
    if not late:
        return
    try:
        late = _of_existing_topics(session, late)
    except TieredStorageError as error:
        show_progress(f"cannot check whether topics with new policies exist: {error}")
    for policy in late:
        show_progress(f"{policy.topic}: the topic was tiered while this command ran")
        yield policy.topic


def _of_existing_topics(
    session: CommandSession, policies: Iterable[TopicPolicy]
) -> list[TopicPolicy]:
    """Return the policies whose topics exist, sorted by topic name; report the others."""
    with reaching_cluster(session.config):
        view = session.bootstrap.view(sorted({policy.topic for policy in policies}))
    found = []
    for policy in sorted(policies, key=lambda each: each.topic):
        topic = view.topics.get(policy.topic)
        if topic is not None and topic.topic_id == policy.topic_id:
            found.append(policy)
        else:
            show_progress(f"{policy.topic}: the topic no longer exists; nothing is restored")
    return found


def _ended(
    session: CommandSession, ending: TieringEnd, policy: TopicPolicy, *, force: bool, dry_run: bool
) -> bool:
    """End the topic's tiering, or with `dry_run` show what that would do.

    Returns whether it succeeded. Prints an error and does not raise it, so that the command
    continues with other topics.
    """
    try:
        if dry_run:
            now, risks = ending.preview(policy.topic, timeout_ms=session.remaining_ms())
            lines = list(preview_lines(now, risks))
        else:
            end_tiering(session, ending, policy.topic, delete_remote=False, force=force)
            lines = [f"{policy.topic}: its own retention is restored"]
    except TieredStorageError as error:
        show_progress(f"{policy.topic}: {error}")
        return False
    with printing():
        print_lines(lines)
    return True


def _not_restored(session: CommandSession, *, force: bool, dry_run: bool) -> Iterator[str]:
    """Restore the retention of topics whose policies are lost; without `force`, yield them instead.

    With `dry_run`, it only shows them. Otherwise, it also deletes the stored originals of topics
    whose tiering has ended, because managers may stop before they do so. With neither `force` nor
    `dry_run`, it yields `(store)` if the store cannot be checked.
    """
    config = session.config.storage
    if config is None:
        return
    try:
        with closing(open_chunk_storage(config)) as storage:
            stored = open_stored_originals(config, storage)
            for policy in topic_policies(session.metadata):
                if policy.state is PolicyState.DISABLED and not dry_run:
                    drop_ended(stored, policy.topic, policy.topic_id)
            restore = OriginalsRestore(
                stored,
                topics=session.topics,
                metadata=session.metadata,
            )
            for settings in restore.lost():
                had = settings_text(settings.values)
                text = f"{settings.topic}: no policy; the store has {had}"
                if dry_run:
                    line = f"{text}, which --force would restore"
                elif force:
                    restore.restore(settings)
                    line = f"{text}: restored"
                else:
                    show_progress(
                        f"{text}. --force restores these settings; the broker may then delete "
                        "records that are not stored"
                    )
                    yield settings.topic
                    continue
                with printing():
                    print_lines([line])
    except TieredStorageError as error:
        show_progress(f"cannot check the store for more topics: {error}")
        if not (force or dry_run):
            yield "(store)"
