"""Responses with stored data when the quota is used up or the queue of reads is full."""

from __future__ import annotations

import time
from uuid import UUID

from rlm.gateway.model.counters import RemoteCount
from rlm.gateway.remote.fetch_quota import FetchQuotaSettings
from rlm.wire.api.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rlm.wire.error_codes import ErrorCode
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.blocking_storage import BlockingStorage
from tests.integration.rlm.gateway.reading import read_from
from tests.integration.rlm.gateway.running_gateway import running_gateway
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.waiting import wait_until

_VERSION = 12
_REMOTE, _ALSO_REMOTE, _LOCAL = range(3)


def _fetch(topic: TieredTopic, *partitions: int, max_wait_ms: int = 50) -> FetchRequest:
    """Return a request for partitions from offset 0 on."""
    asked = tuple(
        FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1 << 20)
        for each in partitions
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=4 << 20,
        session_id=0,
        topics=(FetchTopic(topic=topic.name, topic_id=UUID(int=0), partitions=asked),),
    )


def _rows(response: FetchResponse) -> dict[int, PartitionData]:
    assert response.throttle_time_ms == 0
    rows = {row.partition_index: row for topic in response.responses for row in topic.partitions}
    assert {row.error_code for row in rows.values()} == {ErrorCode.NONE}
    return rows


def test_fetch_when_the_quota_is_exhausted_then_only_what_is_remote_is_empty(
    tiered_host: BrokerHost, tiered: TieredTopic
) -> None:
    """Scenario 64: as in Kafka, no error and no throttle time, which would delay all requests."""
    quota = FetchQuotaSettings(bytes_per_second=1)
    with (
        running_gateway(tiered_host, quota=quota) as gateway,
        WireClient(gateway.bootstrap_servers) as client,
    ):
        wait_until(
            lambda: bool(_rows(client.ask(FETCH, _VERSION, _fetch(tiered, _REMOTE)))[0].records)
        )
        served = gateway.counts.remote[RemoteCount.SERVED]
        rows = _rows(client.ask(FETCH, _VERSION, _fetch(tiered, _REMOTE, _LOCAL)))
        alone = _rows(client.ask(FETCH, _VERSION, _fetch(tiered, _REMOTE)))
        assert gateway.counts.remote[RemoteCount.SERVED] == served
        assert gateway.counts.remote[RemoteCount.THROTTLED] == gateway.counts.throttled_count == 2
    assert not rows[_REMOTE].records
    assert rows[_LOCAL].records
    assert not alone[_REMOTE].records
    assert rows[_REMOTE].high_watermark == len(tiered.values[_REMOTE])


def test_consumer_when_there_is_a_quota_then_reads_all_and_no_faster(
    tiered_host: BrokerHost, tiered: TieredTopic
) -> None:
    """Scenario 64."""
    quota = FetchQuotaSettings(bytes_per_second=3 << 20, window_count=1, window_ms=100)
    with running_gateway(tiered_host, quota=quota) as gateway:
        started_s = time.monotonic()
        read = read_from(
            gateway.bootstrap_servers, tiered.name, settings={"fetch.wait.max.ms": 100}
        )
        took_s = time.monotonic() - started_s
        exceeding_bytes = gateway.counts.remote_bytes - (1 << 20)
    assert [message.value() for message in read] == tiered.values[_REMOTE]
    assert exceeding_bytes > 0
    assert took_s > exceeding_bytes / quota.bytes_per_second - quota.window_ms / 1000


def test_fetch_when_the_readers_queue_is_full_then_is_empty_and_later_served(
    tiered_host: BrokerHost, tiered: TieredTopic
) -> None:
    """Scenarios 60, 64: the broker's own records are not delayed, either."""
    store = BlockingStorage(tiered_host.store)
    with (
        running_gateway(tiered_host, storage=store, slot_count=1) as gateway,
        WireClient(gateway.bootstrap_servers) as first,
        WireClient(gateway.bootstrap_servers) as second,
    ):
        # the first fetch only shows that the offset is in the store
        for _ in range(2):
            _rows(first.ask(FETCH, _VERSION, _fetch(tiered, _REMOTE)))
        wait_until(lambda: store.reads > 0)
        rows = _rows(second.ask(FETCH, _VERSION, _fetch(tiered, _ALSO_REMOTE, _LOCAL)))
        assert gateway.counts.remote[RemoteCount.QUEUE_FULL] > 0
        assert not rows[_ALSO_REMOTE].records
        assert rows[_LOCAL].records
        store.release()
        for client, partition in ((first, _REMOTE), (second, _ALSO_REMOTE)):
            wait_until(
                lambda client=client, partition=partition: bool(  # type: ignore[misc]  # bound now
                    _rows(client.ask(FETCH, _VERSION, _fetch(tiered, partition)))[partition].records
                )
            )
        assert gateway.counts.remote[RemoteCount.STORAGE_ERROR] == 0
    store.close()


def test_gateway_when_clients_leave_while_they_wait_then_nothing_of_them_is_left(
    tiered_host: BrokerHost, tiered: TieredTopic
) -> None:
    """Scenario 59: the gateway releases their queue entries and their bytes of the quota."""
    store = BlockingStorage(tiered_host.store)
    with running_gateway(tiered_host, storage=store, slot_count=1) as gateway:
        clients = [WireClient(gateway.bootstrap_servers) for _ in range(5)]
        for client in clients:
            client.send(FETCH, _VERSION, _fetch(tiered, _REMOTE, max_wait_ms=500))
        wait_until(lambda: gateway.permits.waiting_count > 0)
        for client in clients:
            client.__exit__(None, None, None)
        wait_until(lambda: gateway.counts.connections == 0)
        wait_until(lambda: gateway.permits.taken_count == gateway.permits.waiting_count == 0)
        store.release()
    store.close()
