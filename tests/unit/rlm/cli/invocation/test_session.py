"""What a command asks the cluster after it has connected."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import pytest

from rlm.broker.bootstrap import Bootstrap
from rlm.cli.invocation.session import CommandSession, local_starts_of
from rlm.config.load import client_command_config
from rsm.segment.errors import RetriableError
from tests.fakes.world import TIP
from tests.unit.rlm.topics.tiering_world import World


class _LostBootstrap:
    """A cluster whose brokers no longer answer."""

    def view(self, topics: Collection[str] | None) -> None:
        raise RetriableError("no broker answers", topics=topics)


def test_local_starts_when_no_broker_answers_any_more_then_the_command_may_ask_again() -> None:
    """`rlm segments delete` waits long: an outage meanwhile is not a configuration error."""
    process = World().process()
    session = CommandSession(
        config=client_command_config("broker:9092", None, lambda _: None),
        clock=process.world.clock,
        deadline_ms=60_000,
        bootstrap=cast("Bootstrap", _LostBootstrap()),
        topics=process.world.topics,
        metadata=process.metadata,
        cluster_id="memory",
        positions={},
    )

    with pytest.raises(RetriableError, match="no broker answers"):
        local_starts_of(session, TIP.topic, (TIP,))
