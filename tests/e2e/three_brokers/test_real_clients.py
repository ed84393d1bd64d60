"""Each client library reads stored and local records, once and in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.clients.reader_contract import ReadRequest
from tests.clients.reader_programs import READERS, Reads, reading
from tests.e2e.three_brokers.three_hosts import ThreeHosts
from tests.e2e.three_brokers.transactions import TransactionalTopic
from tests.e2e.three_brokers.written_topic import TIMESTAMP_STEP_MS, WrittenTopic
from tests.services.kafka import admin_client


@pytest.fixture(scope="module")
def transactional(hosts: ThreeHosts, tmp_path_factory: pytest.TempPathFactory) -> WrittenTopic:
    name = tmp_path_factory.mktemp("transactional").name
    topic = TransactionalTopic(hosts.cluster, name)
    topic.produce()
    topic.tier(hosts)
    # The last transaction but one begins in the store and ends at the broker.
    assert topic.last_aborted_offset < topic.local_starts()[0] < topic.records[0][-1].offset
    return topic


def _read(reader: str, request: ReadRequest, directory: Path) -> Reads:
    with reading(reader, request, directory / f"{reader}.log") as running:
        return running.reads()


@pytest.mark.parametrize("reader", READERS)
def test_reader_when_it_starts_at_the_earliest_offset_then_reads_every_record_once_in_order(
    hosts: ThreeHosts, written: WrittenTopic, reader: str, tmp_path: Path
) -> None:
    """Scenarios 41 and 65."""
    request = ReadRequest(bootstrap=hosts.bootstrap_servers, topic=written.name)

    assert _read(reader, request, tmp_path) == written.expected()


@pytest.mark.parametrize("reader", READERS)
def test_reader_when_it_starts_at_a_time_in_the_store_then_reads_from_its_first_record_on(
    hosts: ThreeHosts, written: WrittenTopic, reader: str, tmp_path: Path
) -> None:
    """Scenario 42's lookup, between two records of the store; a reader continues from there."""
    before = min(written.local_starts().values()) // 2
    time_ms = written.first_timestamp_ms + before * TIMESTAMP_STEP_MS - 1
    request = ReadRequest(
        bootstrap=hosts.bootstrap_servers, topic=written.name, start=f"time:{time_ms}"
    )

    assert _read(reader, request, tmp_path) == written.expected_from_time(time_ms)


@pytest.mark.parametrize("reader", READERS)
def test_reader_when_its_group_is_in_the_store_then_continues_from_there(
    hosts: ThreeHosts, written: WrittenTopic, reader: str, tmp_path: Path
) -> None:
    """Scenario 66: without a reset, in every partition."""
    committed = {number: start // 2 + 1 for number, start in written.local_starts().items()}
    group = f"{written.name}-{reader}"
    positions = [TopicPartition(written.name, *each) for each in committed.items()]
    admin = admin_client(hosts.bootstrap_servers)
    altered = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, positions)])
    altered[group].result(30.0)
    request = ReadRequest(
        bootstrap=hosts.bootstrap_servers, topic=written.name, start=f"group:{group}"
    )

    assert _read(reader, request, tmp_path) == written.expected(committed)


@pytest.mark.parametrize("reader", READERS)
def test_reader_of_committed_when_transactions_were_aborted_then_reads_none_of_their_records(
    hosts: ThreeHosts, transactional: WrittenTopic, reader: str, tmp_path: Path
) -> None:
    """Scenarios 50 and 51: aborted in the store, and from the store into the broker's log."""
    request = ReadRequest(
        bootstrap=hosts.bootstrap_servers, topic=transactional.name, isolation="read_committed"
    )

    assert _read(reader, request, tmp_path) == transactional.expected()
