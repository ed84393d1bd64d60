"""Readers of committed records, through a gateway: aborted transactions in either tier and both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import read_from
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.tiered_topic import VALUE_BYTES, VALUES_PER_SEGMENT, TieredTopic
from tests.services.kafka import KafkaCluster

_PER_TRANSACTION = 10


@pytest.fixture(scope="module")
def written(kafka: KafkaCluster, module_host: BrokerHost) -> tuple[TieredTopic, list[bytes]]:
    """Return a tiered topic with its committed records.

    The last aborted transaction begins in a stored segment and ends in a local one.
    """
    topic = TieredTopic(kafka, f"transactions-{module_host.store.parent.name}")
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "transactional.id": topic.name,
            "batch.num.messages": 4,
        }
    )
    producer.init_transactions(30.0)
    committed = []
    for number in range(4 * VALUES_PER_SEGMENT // _PER_TRANSACTION):
        values = _write(producer, topic, number, _PER_TRANSACTION)
        if number % 3:
            producer.commit_transaction(30.0)
            committed += values
        else:
            producer.abort_transaction(30.0)
    _write(producer, topic, 10_000, 3 * VALUES_PER_SEGMENT)
    producer.abort_transaction(30.0)
    committed += _write(producer, topic, 20_000, _PER_TRANSACTION)
    producer.commit_transaction(30.0)
    topic.tier(module_host)
    return topic, committed


@pytest.fixture(scope="module")
def gateway(module_host: BrokerHost) -> Iterator[RunningGateway]:
    with running_gateway(module_host) as gateway:
        yield gateway


def test_reader_of_committed_when_transactions_were_aborted_then_none_of_theirs_is_read(
    gateway: RunningGateway, written: tuple[TieredTopic, list[bytes]]
) -> None:
    """Scenarios 50, 51, R19: aborted in the store only, and partly in each tier."""
    topic, committed = written
    read = read_from(gateway.bootstrap_servers, topic.name)
    assert [message.value() for message in read] == committed
    assert topic.local_start_offset() > 4 * VALUES_PER_SEGMENT


def test_reader_of_committed_when_it_begins_within_an_aborted_transaction_then_skips_its_rest(
    gateway: RunningGateway, written: tuple[TieredTopic, list[bytes]]
) -> None:
    """Scenario 52: the answer lists transactions that began below the returned range."""
    topic, committed = written
    start = topic.local_start_offset() - VALUES_PER_SEGMENT
    read = read_from(gateway.bootstrap_servers, topic.name, offset=start)
    assert [message.value() for message in read] == committed[-_PER_TRANSACTION:]


def test_reader_of_all_when_transactions_were_aborted_then_their_records_are_read_too(
    gateway: RunningGateway, written: tuple[TieredTopic, list[bytes]]
) -> None:
    topic, committed = written
    settings = {"isolation.level": "read_uncommitted"}
    read = read_from(gateway.bootstrap_servers, topic.name, settings=settings)
    values = [message.value() or b"" for message in read]
    assert set(committed) < set(values)
    assert len(values) == len(set(values))
    aborted_count = 3 * VALUES_PER_SEGMENT
    assert len([value for value in values if value.startswith(b"10000-")]) == aborted_count


def _write(producer: Producer, topic: TieredTopic, number: int, count: int) -> list[bytes]:
    """Begin a transaction, write to it, and leave it open."""
    producer.begin_transaction()
    values = [(b"%d-%d-" % (number, each)).ljust(VALUE_BYTES, b".") for each in range(count)]
    for value in values:
        producer.produce(topic.name, value=value, partition=0)
    assert producer.flush(30.0) == 0
    return values
