"""Requests that a gateway relays: produce, transactions, groups, administration, bad input."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.session.session_state import SessionLimits
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import read_from
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.kafka_runtime import run_tool
from tests.services.waiting import wait_until

_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
_SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"


@pytest.fixture
def gateway(host: BrokerHost) -> Iterator[RunningGateway]:
    with running_gateway(host, session_limits=SessionLimits(request_bytes=8 << 20)) as gateway:
        yield gateway


@pytest.mark.parametrize("acks", ["all", "0"])
def test_producer_when_it_writes_through_a_gateway_then_every_record_arrives(
    kafka: KafkaCluster, gateway: RunningGateway, topic_name: str, acks: str
) -> None:
    kafka.create_topic(topic_name)
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "acks": acks})
    values = [b"%d" % each * 1_000 for each in range(2_000)]
    for value in values:
        producer.produce(topic_name, value=value)
    assert producer.flush(30.0) == 0
    wait_until(lambda: _end_offset(kafka, topic_name) == len(values))
    read = read_from(kafka.bootstrap_servers, topic_name)
    assert [message.value() for message in read] == values


def test_transactional_producer_when_it_writes_through_a_gateway_then_only_commits_are_read(
    kafka: KafkaCluster, gateway: RunningGateway, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    producer = Producer(
        {"bootstrap.servers": gateway.bootstrap_servers, "transactional.id": topic_name}
    )
    producer.init_transactions(30.0)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic_name, value=b"%d" % number)
        producer.flush(30.0)
        producer.commit_transaction() if number % 2 else producer.abort_transaction()
    read = read_from(gateway.bootstrap_servers, topic_name)
    assert [message.value() for message in read] == [b"1", b"3", b"5"]


def test_share_consumer_when_it_reads_through_a_gateway_then_gets_every_record(
    kafka: KafkaCluster, gateway: RunningGateway, topic_name: str
) -> None:
    """The gateway passes ShareFetch responses, and Metadata responses for redirects, in pieces."""
    kafka.create_topic(topic_name)
    group = f"{topic_name}-group"
    options = ("--bootstrap-server", gateway.bootstrap_servers, "--group", group)
    reset = ("--topic", topic_name, "--reset-offsets", "--to-earliest", "--execute")
    run_tool(_SHARE_GROUPS, *options, *reset)
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers})
    values = [f"{each}-" + "x" * 1_000 for each in range(2_000)]
    for value in values:
        producer.produce(topic_name, value=value)
    assert producer.flush(30.0) == 0
    limits = ("--max-messages", str(len(values)), "--timeout-ms", "30000")
    printed = run_tool(_SHARE_CONSUMER, *options, "--topic", topic_name, *limits)
    # The output also has log lines of the tool.
    assert [line for line in printed.splitlines() if line.endswith("x")] == values


def test_admin_when_it_uses_a_gateway_then_it_sees_the_gateway_as_the_broker(
    gateway: RunningGateway, topic_name: str
) -> None:
    admin = admin_client(gateway.bootstrap_servers)
    admin.create_topics([NewTopic(topic_name, 2, 1)])[topic_name].result(30.0)
    # The controller answers before the broker's own metadata has the topic.
    wait_until(
        lambda: len(admin.list_topics(topic_name, timeout=30.0).topics[topic_name].partitions) == 2
    )
    listed = admin.list_topics(topic_name, timeout=30.0)
    assert len(listed.topics[topic_name].partitions) == 2
    addresses = [f"{broker.host}:{broker.port}" for broker in listed.brokers.values()]
    assert addresses == [gateway.bootstrap_servers]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", DisconnectCause.MALFORMED_REQUEST, id="http"),
        pytest.param(
            b"\x16\x03\x01\x02\x00\x01\x00\x01", DisconnectCause.MALFORMED_REQUEST, id="tls"
        ),
        pytest.param(b"\xff\xff\xff\xff", DisconnectCause.MALFORMED_REQUEST, id="negative size"),
        pytest.param(
            b"\x00\x00\x00\x0a\x7f\x00\x00\x00\x00\x00\x00\x01\xff\xff",
            DisconnectCause.UNKNOWN_API,
            id="unknown api",
        ),
        pytest.param(
            b"\x00\x00\x00\x0a\x00\x01\x00\x63\x00\x00\x00\x01\xff\xff",
            DisconnectCause.UNOFFERED_VERSION,
            id="unoffered version",
        ),
        pytest.param(
            b"\x00\x00\x00\x0e\x00\x01\x00\x0c\x00\x00\x00\x01\xff\xff\x00\xff\xff\xff",
            DisconnectCause.MALFORMED_REQUEST,
            id="truncated fetch",
        ),
    ],
)
def test_gateway_when_a_client_sends_garbage_then_only_that_connection_ends(
    kafka: KafkaCluster,
    gateway: RunningGateway,
    topic_name: str,
    sent: bytes,
    reason: DisconnectCause,
) -> None:
    kafka.create_topic(topic_name)
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers})
    producer.produce(topic_name, value=b"before")
    assert producer.flush(30.0) == 0
    with socket.create_connection(_address(gateway)) as connection:
        connection.settimeout(10.0)
        connection.sendall(sent * 3)
        assert _read_to_the_end(connection) == b""
    producer.produce(topic_name, value=b"after")
    assert producer.flush(30.0) == 0
    assert gateway.counts.closed[reason] == 1
    assert gateway.counts.closed[DisconnectCause.BROKER_CLOSED] == 0


def _read_to_the_end(connection: socket.socket) -> bytes:
    received = b""
    try:
        while more := connection.recv(65_536):
            received += more
    except ConnectionResetError:
        pass
    return received


def _address(gateway: RunningGateway) -> tuple[str, int]:
    host, _, port = gateway.bootstrap_servers.rpartition(":")
    return host, int(port)


def _end_offset(kafka: KafkaCluster, topic: str) -> int:
    asker = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "unused"})
    try:
        return int(asker.get_watermark_offsets(TopicPartition(topic, 0), timeout=30.0)[1])
    finally:
        asker.close()
