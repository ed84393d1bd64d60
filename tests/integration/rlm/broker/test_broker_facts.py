"""What a real broker reports of its logs, and how it carries out requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.list_offsets import fetch_first_offsets_since
from rlm.broker.own_broker import OwnBroker, ReconnectBackoff
from rlm.broker.spi import RecordDeletion
from rlm.broker.topics.config_requests import (
    alter_topic_configs,
    read_on_replicas,
    read_topic_configs,
)
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.facts.topic_configs import RETENTION_MS, TopicConfigs
from rlm.wire.connection import ConnectionSettings, Connector
from rlm.wire.security.settings import SecuritySettings
from rsm.segment.errors import (
    FencedError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    UnsupportedError,
)
from rsm.segment.ids import TopicIdPartition
from rsm.system_clock import SystemClock
from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until

_RECORD_COUNT = 10
_WEEK_MS = 7 * 24 * 3600 * 1000


def _bootstrap(cluster: KafkaCluster) -> Bootstrap:
    settings = ConnectionSettings(security=SecuritySettings())
    connector = Connector(settings, SystemClock())
    servers = (each.split(":") for each in cluster.bootstrap_servers.split(","))
    return Bootstrap([(host, int(port)) for host, port in servers], connector)


def _own_broker(cluster: KafkaCluster) -> OwnBroker:
    return OwnBroker(
        _bootstrap(cluster),
        SystemClock(),
        node_id=cluster.broker.node_id,
        cluster_id=cluster.cluster_id,
        backoff=ReconnectBackoff(first_ms=50, longest_ms=500),
    )


@pytest.fixture
def own_broker(kafka: KafkaCluster) -> Iterator[OwnBroker]:
    broker = _own_broker(kafka)
    yield broker
    broker.close()


def _produce(cluster: KafkaCluster, topic: str, *, first_timestamp_ms: int | None = None) -> None:
    """Produce `_RECORD_COUNT` records, a millisecond apart from a given time on, or now."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number in range(_RECORD_COUNT):
        timestamp_ms = 0 if first_timestamp_ms is None else first_timestamp_ms + number
        producer.produce(topic, str(number), timestamp=timestamp_ms)
    assert producer.flush(30) == 0


def _led(broker: OwnBroker, topic: str) -> tuple[TopicIdPartition, int]:
    ((partition, epoch),) = broker.leadership((topic,)).items()
    return partition, epoch


def _delete(broker: OwnBroker, partition: TopicIdPartition, before_offset: int, epoch: int) -> int:
    deletion = RecordDeletion(before_offset=before_offset, leader_epoch=epoch)
    answer = broker.delete_records({partition: deletion})
    for error in answer.failed.values():
        raise error
    return answer.succeeded[partition]


def test_view_when_topics_exist_then_ids_leaders_epochs_and_brokers(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    kafka.create_topic(topic_name, partitions=3)

    view = own_broker.view()

    assert view.cluster_id == kafka.cluster_id
    assert str(view.broker(1)) == kafka.broker.address
    topic = view.topic(topic_name)
    assert [each.partition for each in topic.partitions] == [0, 1, 2]
    assert {(each.leader_id, each.leader_epoch) for each in topic.partitions} == {(1, 0)}
    assert {p for p in view.led_by(1) if p.topic == topic_name} == {
        TopicIdPartition(topic_id=topic.topic_id, topic=topic_name, partition=number)
        for number in range(3)
    }


def test_topic_when_it_does_not_exist_then_not_found_and_not_created(
    own_broker: OwnBroker, topic_name: str
) -> None:
    with pytest.raises(NotFoundError):
        own_broker.view((topic_name,)).topic(topic_name)

    assert topic_name not in own_broker.view().topics


def test_offsets_when_a_transaction_is_open_then_stable_offset_stays_before_it(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    """Scenario 2: the last stable offset stays at an open transaction's first record."""
    kafka.create_topic(topic_name)
    _produce(kafka, topic_name)
    partition, epoch = _led(own_broker, topic_name)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic_name}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic_name, b"open")
    assert producer.flush(30) == 0

    while_open = own_broker.offsets({partition: epoch}).succeeded[partition]
    producer.commit_transaction(30)

    assert while_open == PartitionOffsets(
        log_start_offset=0, last_stable_offset=_RECORD_COUNT, high_watermark=_RECORD_COUNT + 1
    )
    marker_end = _RECORD_COUNT + 2
    closed = replace(while_open, last_stable_offset=marker_end, high_watermark=marker_end)
    wait_until(lambda: own_broker.offsets({partition: epoch}).succeeded[partition] == closed)


@pytest.mark.parametrize("distance", [-1, 1])
def test_offsets_when_epoch_is_another_then_fenced(
    services: ServiceProvider, topic_name: str, tmp_path: Path, distance: int
) -> None:
    """R1: FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH become errors of their own."""
    with services.kafka(tmp_path) as cluster:
        cluster.create_topic(topic_name)
        cluster.restart(cluster.broker)  # raises the leader epoch
        broker = _own_broker(cluster)
        led = wait_until(lambda: _led_above(broker, topic_name, epoch=0))
        assert led is not None
        partition, epoch = led

        answer = broker.offsets({partition: epoch + distance})

        broker.close()
        assert isinstance(answer.failed[partition], FencedError)


def _led_above(broker: OwnBroker, topic: str, *, epoch: int) -> tuple[TopicIdPartition, int] | None:
    led = broker.leadership((topic,))
    return next((each for each in led.items() if each[1] > epoch), None)


def test_delete_records_when_below_the_high_watermark_then_log_start_moves(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    _produce(kafka, topic_name)
    partition, epoch = _led(own_broker, topic_name)

    assert _delete(own_broker, partition, 4, epoch) == 4
    assert _delete(own_broker, partition, 2, epoch) == 4
    assert own_broker.offsets({partition: epoch}).succeeded[partition].log_start_offset == 4


def test_delete_records_when_epoch_is_not_the_leaders_then_fenced_and_nothing_is_deleted(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    """R1: a plan of another epoch deletes nothing."""
    kafka.create_topic(topic_name)
    _produce(kafka, topic_name)
    partition, epoch = _led(own_broker, topic_name)

    with pytest.raises(FencedError):
        _delete(own_broker, partition, 4, epoch + 1)

    assert own_broker.offsets({partition: epoch}).succeeded[partition].log_start_offset == 0


def test_delete_records_when_above_the_high_watermark_then_retriable(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    partition, epoch = _led(own_broker, topic_name)

    with pytest.raises(RetriableError):
        _delete(own_broker, partition, 1, epoch)


def test_delete_records_when_topic_is_compacted_then_unsupported(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    kafka.create_topic(topic_name, config={"cleanup.policy": "compact"})
    partition, epoch = _led(own_broker, topic_name)

    with pytest.raises(UnsupportedError):
        _delete(own_broker, partition, 0, epoch)


def test_first_offset_since_when_searched_by_time_then_that_record_or_none(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    kafka.create_topic(topic_name, config={RETENTION_MS: "-1"})
    _produce(kafka, topic_name, first_timestamp_ms=1000)
    partition, epoch = _led(own_broker, topic_name)

    with _bootstrap(kafka).any_broker() as broker:
        found = [
            fetch_first_offsets_since(broker, {partition: epoch}, since_ms).succeeded[partition]
            for since_ms in (0, 1003, 2000)
        ]

    assert found == [0, 3, None]


def test_topic_configs_when_set_and_deleted_then_override_and_default(
    kafka: KafkaCluster, own_broker: OwnBroker, topic_name: str
) -> None:
    """R9: every replica's broker reports the value, and whether the topic itself sets it."""
    kafka.create_topic(topic_name)
    bootstrap = _bootstrap(kafka)
    view = own_broker.view((topic_name,))

    with bootstrap.any_broker() as broker:
        before = read_on_replicas(bootstrap, view, topic_name)[1]
        alter_topic_configs(broker, topic_name, {RETENTION_MS: "-1"})
        wait_until(lambda: read_on_replicas(bootstrap, view, topic_name)[1].retention_ms == -1)
        during = read_on_replicas(bootstrap, view, topic_name)[1]
        alter_topic_configs(broker, topic_name, {RETENTION_MS: None})
        wait_until(lambda: read_on_replicas(bootstrap, view, topic_name)[1].retention_ms != -1)

    assert (before.retention_ms, before.override(RETENTION_MS)) == (_WEEK_MS, None)
    assert (before.retention_bytes, before.cleanup_policy) == (-1, frozenset({"delete"}))
    assert not before.remote_storage_enable
    assert during.override(RETENTION_MS) == "-1"


def test_topic_configs_when_value_is_invalid_then_invalid_config(
    kafka: KafkaCluster, topic_name: str
) -> None:
    kafka.create_topic(topic_name)

    with _bootstrap(kafka).any_broker() as broker, pytest.raises(InvalidConfigError):
        alter_topic_configs(broker, topic_name, {RETENTION_MS: "soon"})


def test_topic_configs_when_one_topic_is_unknown_then_the_others_are_returned(
    kafka: KafkaCluster, topic_name: str
) -> None:
    kafka.create_topic(topic_name)

    with _bootstrap(kafka).any_broker() as broker:
        found = read_topic_configs(broker, ("unknown", topic_name))

    assert isinstance(found["unknown"], NotFoundError)
    assert isinstance(found[topic_name], TopicConfigs)


def test_own_broker_when_it_is_restarted_then_answers_again(
    services: ServiceProvider, tmp_path: Path, topic_name: str
) -> None:
    with services.kafka(tmp_path) as cluster:
        cluster.create_topic(topic_name)
        broker = _own_broker(cluster)
        broker.leadership()
        cluster.broker.kill()
        with pytest.raises(RetriableError):
            broker.leadership()

        cluster.restart(cluster.broker)

        wait_until(lambda: broker.leadership((topic_name,)), despite=RetriableError)
        broker.close()


def test_delete_records_when_a_follower_is_down_then_done_on_the_leader(
    services: ServiceProvider, tmp_path: Path, topic_name: str
) -> None:
    """R2: REQUEST_TIMED_OUT means that the leader did it, but a registered follower is down."""
    # The killed follower stays registered for the whole test.
    properties = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "1000"}
    with services.kafka(tmp_path, brokers=3, properties=properties) as cluster:
        cluster.create_topic(topic_name, replication_factor=3)
        _produce(cluster, topic_name)
        leader_id = _bootstrap(cluster).view().topic(topic_name).partitions[0].leader_id
        leader = next(each for each in cluster.brokers if each.node_id == leader_id)
        broker = OwnBroker(
            _bootstrap(cluster),
            SystemClock(),
            node_id=leader.node_id,
            cluster_id=cluster.cluster_id,
            backoff=ReconnectBackoff(),
        )
        partition, epoch = _led(broker, topic_name)
        next(each for each in cluster.brokers if each is not leader).kill()

        moved_to = _delete(broker, partition, 4, epoch)

        broker.close()
        assert moved_to == 4
