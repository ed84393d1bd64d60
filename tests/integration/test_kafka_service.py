"""The brokers that other tests rely on are real, whichever provider a run has."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.services.kafka import (
    BrokerFailedError,
    KafkaCluster,
    admin_client,
    dump_log_segments,
)
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until

RECORD_COUNT = 100
CHECKOUT = Path(__file__).parents[2]


def test_topic_when_produced_to_then_consumed_in_order(
    kafka: KafkaCluster, topic_name: str
) -> None:
    kafka.create_topic(topic_name)

    _produce(kafka, topic_name, RECORD_COUNT)

    values = [message.value() for message in _consume(kafka, topic_name, RECORD_COUNT)]
    assert values == [f"value-{number}".encode() for number in range(RECORD_COUNT)]


def test_dump_log_segments_when_given_a_log_file_then_lists_every_record(
    kafka: KafkaCluster, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    _produce(kafka, topic_name, RECORD_COUNT)

    text = dump_log_segments(_partition_dir(kafka, topic_name) / f"{0:020}.log")

    assert len(re.findall(r"^\| offset: ", text, re.MULTILINE)) == RECORD_COUNT
    assert "isvalid: false" not in text


def test_broker_when_killed_and_restarted_then_keeps_address_and_records(
    services: ServiceProvider, tmp_path: Path
) -> None:
    with services.kafka(tmp_path) as cluster:
        cluster.create_topic("kept")
        _produce(cluster, "kept", RECORD_COUNT)
        cluster.broker.kill()

        cluster.restart(cluster.broker)

        assert len(_consume(cluster, "kept", RECORD_COUNT)) == RECORD_COUNT


def test_cluster_of_three_when_one_broker_is_killed_then_another_leads(
    services: ServiceProvider, tmp_path: Path
) -> None:
    with services.kafka(tmp_path, brokers=3) as cluster:
        cluster.create_topic("moved", replication_factor=3)
        leader = _leader(cluster, "moved")

        cluster.brokers[leader - 1].kill()

        _wait_for_another(cluster, "moved", leader)


def test_cluster_when_it_did_without_a_broker_then_the_first_replicas_lead_again(
    kafka_of_three: KafkaCluster, topic_name: str
) -> None:
    kafka_of_three.create_topic(topic_name, replication_factor=3)
    leader = _leader(kafka_of_three, topic_name)

    with kafka_of_three.without(kafka_of_three.brokers[leader - 1]):
        _wait_for_another(kafka_of_three, topic_name, leader)

    assert _leader(kafka_of_three, topic_name) == leader


def test_broker_when_its_configuration_is_wrong_then_start_shows_the_log(
    services: ServiceProvider, tmp_path: Path
) -> None:
    cluster = services.kafka(tmp_path, properties={"num.io.threads": "none"})

    with pytest.raises(BrokerFailedError, match=r"num\.io\.threads"):
        cluster.start()


def test_broker_when_its_starter_is_killed_then_ends_too(
    services: ServiceProvider, tmp_path: Path
) -> None:
    program = (
        "import pathlib, signal, sys; from tests.services.provider import provider_named\n"
        "cluster = provider_named(sys.argv[1]).kafka(pathlib.Path(sys.argv[2])); cluster.start()\n"
        "print(cluster.broker.pid, flush=True); signal.pause()"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program, services.name, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    )
    with starter:
        assert starter.stdout is not None
        broker_pid = int(starter.stdout.readline())

        os.kill(starter.pid, signal.SIGKILL)

    wait_until(lambda: not psutil.pid_exists(broker_pid), 10.0, "the broker's end")


def _produce(kafka: KafkaCluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, value=f"value-{number}".encode(), partition=0)
    assert producer.flush(30.0) == 0


def _consume(kafka: KafkaCluster, topic: str, count: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return consumer.consume(count, timeout=30.0)
    finally:
        consumer.close()


def _wait_for_another(kafka: KafkaCluster, topic: str, leader: int) -> None:
    wait_until(
        lambda: _leader(kafka, topic) not in {leader, -1},
        60.0,
        "a new leader",
        despite=KafkaException,
    )


def _leader(kafka: KafkaCluster, topic: str) -> int:
    metadata = admin_client(kafka.bootstrap_servers).list_topics(topic, timeout=10.0)
    leader: int = metadata.topics[topic].partitions[0].leader
    return leader


def _partition_dir(kafka: KafkaCluster, topic: str) -> Path:
    return kafka.broker.log_dirs[0] / f"{topic}-0"
