"""Builds the tools of commands that begin or end tiering, for an open session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from typing import Annotated
from uuid import UUID, uuid4

import typer

from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.manager_access import leading_managers
from rlm.cli.invocation.managers import ManagerLags, managers_defaults
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.session import CommandSession
from rlm.policy.topic.disable_gate import RecordsAtRisk
from rlm.rest.manager_client import ManagerClient
from rlm.topics.broker_retention import BrokerRetention
from rlm.topics.disable import TieringEnd
from rlm.topics.enable import Tiering
from rlm.topics.lost_policy import Recall
from rlm.topics.originals_mirror import StoredOriginals
from rlm.topics.policy_writer import PolicyWriter
from rlm.worker.cluster_access import own_topics
from rlm.worker.store_access import open_chunk_storage, open_stored_originals
from rlmm.events.policy import TopicPolicy
from rsm.layout.originals import OriginalSettings
from rsm.program.confirmation import confirm
from rsm.segment.errors import RetriableError

ForceOption = Annotated[
    bool,
    typer.Option("--force", help="**Data loss:** give up records that are not stored in time."),
]


def tiering_of(session: CommandSession) -> Tiering:
    """Build the tool that activates policies."""
    return Tiering(
        PolicyWriter(session.metadata, uuid4),
        BrokerRetention(session.topics, session.clock),
        session.clock,
        own_topics=own_topics(session.config.metadata, session.config.manager),
        progress=show_progress,
        recall=partial(_recall, session),
        managers=managers_defaults(session),
    )


@contextmanager
def recalling(session: CommandSession) -> Iterator[Recall]:
    """Yield a function that finds the originals of topics in the store.

    The function opens the store when the first topic needs it. It raises RetriableError if the
    command has no settings of a store.
    """
    config = session.config.storage
    with ExitStack() as opened:

        @cache
        def stored() -> StoredOriginals:
            if config is None:
                raise RetriableError(
                    "cannot look for the original settings in the store: no store is configured",
                    advice="Give --config with the file of a manager",
                )
            storage = opened.enter_context(closing(open_chunk_storage(config)))
            return open_stored_originals(config, storage)

        def recall(topic: str, topic_id: UUID) -> OriginalSettings | None:
            found = stored().of_topic(topic, topic_id)
            if found is not None:
                text = settings_text(found.values)
                show_progress(f"originals of {topic} found in the store: {text}")
            return found

        yield recall


def _recall(session: CommandSession, topic: str, topic_id: UUID) -> OriginalSettings | None:
    with recalling(session) as recall:
        return recall(topic, topic_id)


def tiering_end_of(session: CommandSession, client: ManagerClient) -> TieringEnd:
    """Build the tool that ends policies."""
    return TieringEnd(
        tiering_of(session),
        PolicyWriter(session.metadata, uuid4),
        BrokerRetention(session.topics, session.clock),
        topics=session.topics,
        metadata=session.metadata,
        lags=ManagerLags(leading_managers(session, client)),
        clock=session.clock,
        progress=show_progress,
    )


def confirm_end(
    session: CommandSession, topic: str, *, delete_remote: bool, force: bool, yes: bool
) -> CommandSession:
    """Ask before data of a topic is lost; return the session to continue with."""
    remaining_ms = session.remaining_ms()
    if delete_remote:
        _, partitions = find_tiered(session, PartitionName(topic=topic))
        records = [r for tip in partitions for r in session.metadata.list_remote_log_segments(tip)]
        objects_count = sum(len(record.metadata.objects) for record in records)
        also = ", and give up records that are not stored in time" if force else ""
        confirm(f"Delete all stored objects of {topic} ({objects_count}){also}?", yes=yes)
    elif force:
        confirm(f"Give up records of {topic} that are not stored in time?", yes=yes)
    return session.with_remaining(remaining_ms)


def end_tiering(
    session: CommandSession, ending: TieringEnd, topic: str, *, delete_remote: bool, force: bool
) -> TopicPolicy:
    """Run `TieringEnd.disable` with the remaining timeout plus one cycle interval."""
    # Each manager runs one more cycle after it has read that trims must stop.
    timeout_ms = session.remaining_ms() + session.config.manager.task_interval_ms
    return ending.disable(topic, delete_remote=delete_remote, force=force, timeout_ms=timeout_ms)


def show_progress(text: str) -> None:
    """Print the progress of a slow operation to standard error."""
    typer.echo(text, err=True)


def preview_lines(policy: TopicPolicy, risks: Iterable[RecordsAtRisk]) -> Iterator[str]:
    """Yield lines about the settings that the end of tiering would restore, and the risks."""
    restored = settings_text({each.name: each.value for each in policy.originals})
    yield f"{policy.topic}: {policy.state.name}; would restore {restored}"
    for risk in tuple(risks) or ("nothing",):
        yield f"at risk: {risk}"


def settings_text(settings: Mapping[str, str | None]) -> str:
    """Format a topic's own settings for people."""
    return ", ".join(
        f"{name}={'(no override)' if value is None else value}" for name, value in settings.items()
    )
