"""Offset lookups of many partitions at once, with a slow store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rlm.wire.error_codes import ErrorCode
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.blocking_storage import BlockingStorage
from tests.integration.rlm.gateway.raw_requests import fetch, from_offset
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_PARTITIONS = 12
_THREADS = 8
_VERSION = 10
_EARLIEST = -2
_LONG_MS = 30_000


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster, module_host: BrokerHost) -> TieredTopic:
    """A topic whose partitions have their first segment in the store alone."""
    topic = TieredTopic(kafka, f"lookups-{module_host.store.parent.name}", partitions=_PARTITIONS)
    for number in range(_PARTITIONS):
        topic.produce(2, partition=number)
    topic.tier(module_host)
    return topic


@contextmanager
def _blocked(host: BrokerHost) -> Iterator[tuple[RunningGateway, BlockingStorage]]:
    storage = BlockingStorage(host.store)
    with (
        running_gateway(host, storage=storage, list_offsets_timeout_ms=_LONG_MS) as gateway,
        ExitStack() as resources,
    ):
        resources.callback(storage.release)
        yield gateway, storage


@contextmanager
def _clients(gateway: RunningGateway, count: int) -> Iterator[list[WireClient]]:
    with ExitStack() as stack:
        yield [stack.enter_context(WireClient(gateway.bootstrap_servers)) for _ in range(count)]


def _request(
    topic: TieredTopic, timestamp: int, *, timeout_ms: int = _LONG_MS
) -> ListOffsetsRequest:
    asked = tuple(
        ListOffsetsPartition(partition_index=number, timestamp=timestamp)
        for number in range(_PARTITIONS)
    )
    return ListOffsetsRequest(
        replica_id=-1,
        topics=(ListOffsetsTopic(name=topic.name, partitions=asked),),
        timeout_ms=timeout_ms,
    )


def _results(rows: tuple[ListOffsetsPartitionResponse, ...]) -> set[tuple[int, int]]:
    assert len(rows) == _PARTITIONS
    return {(row.error_code, row.offset) for row in rows}


def test_times_when_of_many_partitions_then_the_store_is_read_for_several_at_once(
    module_host: BrokerHost, topic: TieredTopic
) -> None:
    """Scenario 42: the reads of several partitions overlap."""
    with (
        _blocked(module_host) as (gateway, storage),
        WireClient(gateway.bootstrap_servers) as client,
    ):
        client.send(LIST_OFFSETS, _VERSION, _request(topic, 0))
        wait_until(lambda: storage.reads == _THREADS, describe=lambda: str(storage.reads))
        storage.release()
        rows = client.answer(LIST_OFFSETS, _VERSION).topics[0].partitions

    assert _results(rows) == {(ErrorCode.NONE, 0)}


def test_times_when_the_store_is_too_slow_for_the_client_then_it_is_answered_in_time_and_asks_again(
    module_host: BrokerHost, topic: TieredTopic
) -> None:
    """KIP-1075: the response comes within the client's timeout, not the store's time."""
    with (
        _blocked(module_host) as (gateway, storage),
        WireClient(gateway.bootstrap_servers) as client,
    ):
        asked = _request(topic, 0, timeout_ms=300)
        late = client.ask(LIST_OFFSETS, _VERSION, asked).topics[0].partitions
        named = client.ask(LIST_OFFSETS, _VERSION, _request(topic, _EARLIEST)).topics[0].partitions
        storage.release()
        again = client.ask(LIST_OFFSETS, _VERSION, _request(topic, 0)).topics[0].partitions

    assert _results(late) == {(ErrorCode.REQUEST_TIMED_OUT, -1)}
    assert _results(named) == {(ErrorCode.NONE, 0)}
    assert _results(again) == {(ErrorCode.NONE, 0)}


def test_fetch_when_look_ups_wait_for_the_store_then_does_not_wait_for_them(
    module_host: BrokerHost, topic: TieredTopic
) -> None:
    """Data in memory is served regardless of the number of lookups in flight."""
    with (
        _blocked(module_host) as (gateway, storage),
        _clients(gateway, _THREADS + 1) as (reader, *askers),
    ):
        partition = topic.partition()
        storage.release()
        wait_until(lambda: fetch(reader, partition, 11, from_offset(0)).records)
        storage.block()
        before_count = storage.reads
        for each in askers:
            each.send(LIST_OFFSETS, _VERSION, _request(topic, 0))
        wait_until(lambda: storage.reads > before_count)
        found = fetch(reader, partition, 11, from_offset(0))

    assert found.error_code == ErrorCode.NONE
    assert found.records


def test_start_when_look_ups_by_time_wait_for_the_store_then_does_not_wait_for_them(
    module_host: BrokerHost, topic: TieredTopic
) -> None:
    """A request that does not need the store gets a thread, even with more lookups than threads."""
    with (
        _blocked(module_host) as (gateway, storage),
        _clients(gateway, 2 * _THREADS + 1) as (asker, *others),
    ):
        for each in others:
            each.send(LIST_OFFSETS, _VERSION, _request(topic, 0))
        wait_until(lambda: storage.reads > 0)
        asked = _request(topic, _EARLIEST, timeout_ms=_LONG_MS // 3)
        starts = asker.ask(LIST_OFFSETS, _VERSION, asked).topics[0].partitions

    assert _results(starts) == {(ErrorCode.NONE, 0)}
