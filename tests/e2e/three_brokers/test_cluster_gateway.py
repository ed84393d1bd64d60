"""One gateway on a separate host serves a cluster: clients know only its first address."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from rlmm.events.registration import NO_BROKER, ProcessRole, registrations
from tests.clients.reader_contract import ReadRequest
from tests.clients.reader_programs import reading
from tests.e2e.three_brokers.cluster_gateway import ClusterGateway
from tests.e2e.three_brokers.three_hosts import ThreeHosts, broker_of
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.certificates import CertificateAuthority
from tests.services.kafka import admin_client
from tests.services.kafka_runtime import run_tool
from tests.services.waiting import wait_until

_FETCH_BYTES = 64 << 10
_READ_BEFORE_PAUSE = 30
_DEADLINE_S = 60.0
_REFUSED_S = 30.0  # less than a gateway waits for a first request


@pytest.fixture(scope="module")
def gateway(
    hosts: ThreeHosts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterGateway]:
    gateway = ClusterGateway(tmp_path_factory.mktemp("cluster-gateway"), hosts)
    with gateway.running():
        yield gateway


def test_clients_when_they_begin_at_any_endpoint_then_get_an_endpoint_for_each_broker(
    gateway: ClusterGateway,
) -> None:
    """R16: the port of a broker's endpoint is the first port + 1 + node id."""
    for asked in (gateway.bootstrap_servers, *gateway.endpoints.values()):
        _wait_redirected_to_all_endpoints(gateway, asked)
    assert gateway.metric("rlm_gateway_unserved_brokers") == 0


def test_description_when_asked_for_then_names_the_endpoints(gateway: ClusterGateway) -> None:
    """R16: DescribeCluster, at any endpoint."""
    for asked in (gateway.bootstrap_servers, *gateway.endpoints.values()):
        _wait_all_endpoints_described(gateway, asked)


def test_registration_when_a_gateway_serves_the_cluster_then_holds_for_trims_but_leads_nobody(
    hosts: ThreeHosts, gateway: ClusterGateway
) -> None:
    """R15, R16: the brokers' own gateways redirect clients only to each other."""
    with hosts.any_host.metadata() as metadata:
        registered = {
            each.process.gateway_address: each.process for each in registrations(metadata)
        }

    own = registered[gateway.bootstrap_servers]
    assert (own.role, own.broker_id) == (ProcessRole.GATEWAY, NO_BROKER)
    assert own.applied
    for broker in hosts.cluster.brokers:
        hosts.wait_led_to(
            {each.node_id: hosts.gateway(each.node_id) for each in hosts.cluster.brokers},
            asked=broker.node_id,
        )


def test_producer_when_it_knows_the_bootstrap_endpoint_then_writes_to_every_leader(
    hosts: ThreeHosts, gateway: ClusterGateway, topic_name: str, tmp_path: Path
) -> None:
    topic = WrittenTopic(hosts.cluster, topic_name, partitions=3)
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "acks": "all"})
    for number in topic.records:
        topic.write(producer, number, topic.records[number].append)
    assert producer.flush(30.0) == 0

    request = ReadRequest(bootstrap=gateway.bootstrap_servers, topic=topic.name)
    with reading("librdkafka", request, tmp_path / "reader.log") as reader:
        assert reader.reads() == topic.expected()


def test_readers_when_a_broker_is_killed_and_comes_back_then_read_every_record_once_in_order(
    hosts: ThreeHosts, gateway: ClusterGateway, written: WrittenTopic, tmp_path: Path
) -> None:
    """Scenarios 41, 45 and 65: clients read while the broker is down, and when it leads again."""
    request = ReadRequest(
        bootstrap=gateway.bootstrap_servers,
        topic=written.name,
        pause=_READ_BEFORE_PAUSE,
        fetch_bytes=_FETCH_BYTES,
    )
    gone = broker_of(hosts.cluster, written.leaders()[0])
    with (
        reading("java", request, tmp_path / "meanwhile.log") as meanwhile,
        reading("librdkafka", request, tmp_path / "after.log") as after,
    ):
        meanwhile.wait_paused()
        after.wait_paused()
        with hosts.cluster.without(gone, killed=True):
            written.wait_led_without(gone)
            _assert_refused_soon(gateway.endpoints[gone.node_id])
            wait_until(
                lambda: gone.node_id not in gateway.led_to(gateway.bootstrap_servers),
                _DEADLINE_S,
                f"nobody is led to {gone.node_id}",
                despite=KafkaException,
            )
            meanwhile.resume()
            assert meanwhile.reads() == written.expected()
        after.resume()
        assert after.reads() == written.expected()


def _wait_redirected_to_all_endpoints(gateway: ClusterGateway, asked: str) -> None:
    wait_until(
        lambda: gateway.led_to(asked) == gateway.endpoints,
        _DEADLINE_S,
        f"{asked} leads to {gateway.endpoints}",
        despite=KafkaException,
    )


def _wait_all_endpoints_described(gateway: ClusterGateway, asked: str) -> None:
    def nodes() -> dict[int, str]:
        admin = admin_client(asked)  # keeps the client alive until its requests have ended
        described = admin.describe_cluster().result(30.0)
        return {node.id: f"{node.host}:{node.port}" for node in described.nodes}

    wait_until(
        lambda: nodes() == gateway.endpoints,
        _DEADLINE_S,
        f"{asked} describes {gateway.endpoints}",
        despite=KafkaException,
    )


def _assert_refused_soon(endpoint: str) -> None:
    """Check that a client is refused at once, as at a dead broker's port."""
    host, _, port = endpoint.rpartition(":")
    with closing(socket.create_connection((host, int(port)), timeout=_REFUSED_S)) as connection:
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            return


def test_gateway_when_the_cluster_has_no_metadata_topic_then_waits_and_makes_none(
    hosts: ThreeHosts, topic_name: str, tmp_path: Path
) -> None:
    """It may be another cluster, and without a local broker the gateway cannot know that."""
    gateway = ClusterGateway(tmp_path, hosts, metadata_topic=topic_name)
    with gateway.started():
        wait_until(lambda: "topic" in gateway.unready_because(), 30.0, gateway.unready_because)

    topics = admin_client(hosts.cluster.bootstrap_servers).list_topics(timeout=10.0).topics
    assert topic_name not in topics


def test_reader_when_each_broker_has_a_name_then_one_port_leads_to_all_of_them(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """R16, by server names: Kafka's own consumer looks them up in a file of hosts."""
    authority = CertificateAuthority(tmp_path / "certificates")
    shown = authority.issue("gateway", subject_alternative="IP:127.0.0.1,DNS:*.kafka.test")
    further = {
        "gateway.listener.security.protocol": "SSL",
        "gateway.ssl.keystore.location": str(shown.keystore),
        "gateway.advertised.name.template": "broker-{node}.kafka.test",
    }
    gateway = ClusterGateway(tmp_path, hosts, further=further)
    names = " ".join(f"broker-{each.node_id}.kafka.test" for each in hosts.cluster.brokers)
    (tmp_path / "hosts").write_text(f"127.0.0.1 localhost {names}\n")
    (tmp_path / "client.properties").write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority.certificate}\n"
    )
    count = sum(map(len, written.records.values()))

    with gateway.running():
        printed = run_tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", gateway.bootstrap_servers, "--topic", written.name),
            *("--command-config", str(tmp_path / "client.properties"), "--from-beginning"),
            *("--max-messages", str(count), "--timeout-ms", "30000"),
            *("--formatter-property", "print.value=false"),
            *("--formatter-property", "print.partition=true"),
            *("--formatter-property", "print.offset=true"),
            flags=(f"-Djdk.net.hosts.file={tmp_path / 'hosts'}",),
        )

    places = re.findall(r"Partition:(\d+)\s+Offset:(\d+)", printed)
    assert sorted((int(number), int(offset)) for number, offset in places) == [
        (number, each.offset) for number, records in written.records.items() for each in records
    ]
