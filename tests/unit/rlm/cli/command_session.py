"""A command's session over a cluster in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rlm.cli.invocation.session import CommandSession
from rlm.config.load import CommandConfig
from tests.unit.rlm.topics.tiering_world import Process

if TYPE_CHECKING:
    from rlm.broker.bootstrap import Bootstrap


def session_of(process: Process, config: CommandConfig) -> CommandSession:
    """Return the session of a command next to a process, with a deadline of a minute."""
    return CommandSession(
        config=config,
        clock=process.world.clock,
        deadline_ms=60_000,
        bootstrap=cast("Bootstrap", process.world.topics),
        topics=process.world.topics,
        metadata=process.metadata,
        cluster_id="memory",
        positions={},
    )
