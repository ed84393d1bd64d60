"""Clients that do not receive the stored data they requested, and others that need its memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from rlm.gateway.listener.server import ServerLimits
from rlm.gateway.model.counters import RemoteCount
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.wire.api.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from rlm.wire.error_codes import ErrorCode
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import read_from
from tests.integration.rlm.gateway.running_gateway import running_gateway
from tests.integration.rlm.gateway.tiered_topic import SEGMENT_BYTES, TieredTopic
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.waiting import wait_until

_VERSION = 12
_PARTITION = 0
_MORE_THAN_SOCKETS_HOLD = 40  # answers, each with a segment


def _fetch(topic: TieredTopic) -> FetchRequest:
    asked = FetchPartition(partition=_PARTITION, fetch_offset=0, partition_max_bytes=SEGMENT_BYTES)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=SEGMENT_BYTES,
        session_id=0,
        topics=(FetchTopic(topic=topic.name, topic_id=UUID(int=0), partitions=(asked,)),),
    )


class _Unchanged:
    """A condition: a count has reached `least` and has not changed for a second."""

    def __init__(self, count: Callable[[], int], *, least: int) -> None:
        self._count = count
        self._least = least
        self._seen, self._since_s = -1, 0.0

    def __call__(self) -> bool:
        seen, now_s = self._count(), time.monotonic()
        if seen != self._seen:
            self._seen, self._since_s = seen, now_s
        return seen >= self._least and now_s - self._since_s >= 1.0


def test_gateway_when_clients_do_not_take_their_answers_then_others_are_served(
    tiered_host: BrokerHost, tiered: TieredTopic
) -> None:
    """Scenario 115: one client blocks the memory, which has room for about one response."""
    with (
        running_gateway(
            tiered_host,
            cache_bytes=3 * SEGMENT_BYTES // 2,
            server_limits=ServerLimits(pressure_timeout_ms=3_000),
        ) as gateway,
        WireClient(gateway.bootstrap_servers) as stalled,
    ):
        # the first fetch only shows that the offset is in the store
        stalled.ask(FETCH, _VERSION, _fetch(tiered))
        for _ in range(_MORE_THAN_SOCKETS_HOLD):
            stalled.send(FETCH, _VERSION, _fetch(tiered))
        wait_until(_Unchanged(lambda: gateway.counts.remote[RemoteCount.SERVED], least=2))

        read = read_from(gateway.bootstrap_servers, tiered.name)

        assert [message.value() for message in read] == tiered.values[_PARTITION]
        assert gateway.counts.closed[DisconnectCause.ANSWER_NOT_TAKEN] == 1


def test_client_when_it_takes_its_answers_late_then_gets_each_and_held_memory_for_one(
    tiered_host: BrokerHost, tiered: TieredTopic
) -> None:
    """Scenario 115: the gateway reads the next request after the client received a response."""
    with (
        running_gateway(tiered_host) as gateway,
        WireClient(gateway.bootstrap_servers) as late,
    ):
        late.ask(FETCH, _VERSION, _fetch(tiered))
        for _ in range(_MORE_THAN_SOCKETS_HOLD):
            late.send(FETCH, _VERSION, _fetch(tiered))
        wait_until(_Unchanged(lambda: gateway.counts.remote[RemoteCount.SERVED], least=2))
        served_count = gateway.counts.remote[RemoteCount.SERVED]

        answers = [late.answer(FETCH, _VERSION) for _ in range(_MORE_THAN_SOCKETS_HOLD)]

        assert served_count < _MORE_THAN_SOCKETS_HOLD
        rows = [answer.responses[0].partitions[0] for answer in answers]
        assert {row.error_code for row in rows} == {ErrorCode.NONE}
        assert len({row.records for row in rows}) == 1
