"""What commands that begin and end tiering work with, made for an open session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import uuid4

import typer

from rlm.cli.managers import ManagerLags
from rlm.cli.session import Session
from rlm.outside import own_topics
from rlm.policy.disable_gate import RecordsAtRisk
from rlm.rest.manager_client import ManagerClient
from rlm.tasks.broker_retention import BrokerRetention
from rlm.tasks.policy_writer import PolicyWriter
from rlm.tasks.tiering import Tiering
from rlm.tasks.tiering_end import TieringEnd
from rlmm.events import TopicPolicy


def tiering_of(session: Session) -> Tiering:
    """What brings policies into force."""
    return Tiering(
        PolicyWriter(session.metadata, uuid4),
        BrokerRetention(session.topics, session.clock),
        session.clock,
        own_topics=own_topics(session.config.metadata, session.config.manager),
        progress=show_progress,
    )


def tiering_end_of(session: Session, client: ManagerClient) -> TieringEnd:
    """What takes policies out of force."""
    return TieringEnd(
        tiering_of(session),
        PolicyWriter(session.metadata, uuid4),
        BrokerRetention(session.topics, session.clock),
        topics=session.topics,
        metadata=session.metadata,
        lags=ManagerLags(session.metadata, client),
        clock=session.clock,
        progress=show_progress,
    )


def show_progress(text: str) -> None:
    """A step of what takes long, on standard error."""
    typer.echo(text, err=True)


def preview_lines(policy: TopicPolicy, risks: Iterable[RecordsAtRisk]) -> Iterator[str]:
    """What ending a topic's tiering would restore and lose, for people."""
    restored = ", ".join(
        f"{each.name}={'(no override)' if each.value is None else each.value}"
        for each in policy.originals
    )
    yield f"{policy.topic}: {policy.state.name}; would restore {restored}"
    for risk in tuple(risks) or ("nothing",):
        yield f"at risk: {risk}"
