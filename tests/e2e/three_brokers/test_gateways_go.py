"""Gateways stop, come back and move while clients read through them."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import psutil
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.clients.console_producer import console_producer
from tests.clients.reader_programs import READERS_WITH_REBOOTSTRAP
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_ARRIVED_DEADLINE_S = 60.0
_PRODUCERS_MAX = 5


def _gateway_pids(supervisor: ServiceProcess) -> set[int]:
    children = psutil.Process(supervisor.pid).children()
    return {each.pid for each in children if "--gateway-fd" in each.cmdline()}


def _kill_gateways(hosts: ThreeHosts, *node_ids: int) -> None:
    killed = set().union(*(_gateway_pids(hosts.process(node_id)) for node_id in node_ids))
    assert len(killed) == len(node_ids)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(psutil.pid_exists, killed)), describe="they are gone")


def _keys_by_leader(cluster: KafkaCluster, topic: str) -> dict[int, str]:
    """Create a topic; return, for each broker, a key that Java's client produces to it."""
    cluster.create_topic(topic, partitions=3, replication_factor=3)
    found = admin_client(cluster.bootstrap_servers).list_topics(topic, 10.0).topics[topic]
    keys: dict[int, str] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        number, key = message.partition(), message.key()
        assert error is None, error
        assert number is not None
        assert key is not None
        keys.setdefault(found.partitions[number].leader, key.decode())

    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "partitioner": "murmur2"})
    for number in range(100):
        producer.produce(topic, key=str(number), on_delivery=delivered)
    assert producer.flush(30.0) == 0
    return keys


def _wait_read(cluster: KafkaCluster, topic: str, value: str) -> None:
    """Wait until a broker has a record with this value."""
    settings = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, **settings})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
    with closing(consumer):
        wait_until(
            lambda: value.encode() in {each.value() for each in consumer.consume(200, timeout=0.2)},
            _ARRIVED_DEADLINE_S,
            describe=f"{value!r} is read",
        )


def test_readers_when_every_gateway_process_is_killed_then_continue_through_the_next_ones(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """The supervisor keeps the port bound: readers reconnect and read every record, in order."""
    with paused_readers(hosts.bootstrap_servers, written, tmp_path) as readers:
        _kill_gateways(hosts, 1, 2, 3)

        assert_read_all(readers, written)


def test_readers_when_a_brokers_gateway_is_away_then_are_held_at_others_until_it_is_back(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """R16: no gateway redirects clients to the broker, where a trimmed offset ends the read."""
    away = written.leaders()[0]
    others = [node_id for node_id in (1, 2, 3) if node_id != away]
    with paused_readers(hosts.bootstrap_servers, written, tmp_path) as readers:
        hosts.stop(away)
        try:
            led_to = {node_id: hosts.gateway(node_id) for node_id in others}
            led_to[away] = hosts.gateway(others[away % len(others)])
            for asked in others:
                hosts.wait_led_to(led_to, asked=asked)
            for each in readers:
                each.resume()
        finally:
            hosts.start(away)
        for each in readers:
            assert each.reads() == written.expected(), each.reader


def test_readers_when_all_gateways_have_moved_then_begin_again_at_their_bootstrap_servers(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """KIP-899: no gateway serves the addresses that the readers have received."""
    new = hosts.new_addresses()
    bootstrap_servers = f"{hosts.bootstrap_servers},{','.join(new.values())}"
    with paused_readers(
        bootstrap_servers, written, tmp_path, readers=READERS_WITH_REBOOTSTRAP
    ) as readers:
        hosts.move_gateways(new)

        assert_read_all(readers, written)


def test_producer_when_it_connects_by_old_metadata_then_is_sent_on_to_the_leaders_gateway(
    hosts: ThreeHosts, tmp_path: Path
) -> None:
    """Java's client keeps its connection for a broker, whatever address Metadata has.

    The gateway restarts at the old address, so it does not know which connections are stray. The
    client chooses at random which gateways it asks for metadata. If one of them is killed, it gets
    new metadata, and the producer is tried again.
    """
    replacing = 1
    keys = _keys_by_leader(hosts.cluster, "led-elsewhere")
    for number in range(_PRODUCERS_MAX):
        _produce_by_old_metadata(hosts, keys, tmp_path / f"{number}.log", replacing=replacing)
        if hosts.led_elsewhere(replacing):
            return
    raise AssertionError("no producer was sent on")


def _produce_by_old_metadata(
    hosts: ThreeHosts, keys: dict[int, str], log: Path, *, replacing: int
) -> None:
    """Produce to a broker that is back, with metadata from before, if the client still has it."""
    away, other = 2, 3
    replaced = {node_id: hosts.gateway(node_id) for node_id in (replacing, other)}
    hosts.stop(away)
    try:
        hosts.wait_led_to({**replaced, away: hosts.gateway(replacing)}, asked=other)
        with console_producer(
            hosts.gateway(other),
            "led-elsewhere",
            log,
            enable_idempotence="false",
            enable_metrics_push="false",
        ) as producer:
            producer.send(keys[other], f"{log.stem} has metadata")
            _wait_read(hosts.cluster, "led-elsewhere", f"{log.stem} has metadata")
            hosts.start(away)
            _kill_gateways(hosts, replacing)
            hosts.wait_all_led_home(asked=replacing)
            assert not hosts.led_elsewhere(replacing)

            producer.send(keys[away], f"{log.stem} by old metadata")

            _wait_read(hosts.cluster, "led-elsewhere", f"{log.stem} by old metadata")
    finally:
        hosts.start()
