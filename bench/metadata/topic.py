"""Fills a metadata topic of a real broker with the catalogue's records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import KafkaError, Message, Producer

from bench.metadata.catalogue import METADATA_PARTITIONS, records
from rlmm.topic.kafka import KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import RetriableError
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_BUILD = Path(__file__).resolve().parents[2] / "build"
_TIMEOUT_S = 120.0


@contextmanager
def metadata_broker() -> Iterator[KafkaCluster]:
    """Yield a broker; stop it and remove its files at the end."""
    _BUILD.mkdir(exist_ok=True)
    with (
        TemporaryDirectory(prefix="bench-", dir=_BUILD) as directory,
        KafkaCluster(Path(directory) / "kafka") as cluster,
    ):
        yield cluster


def open_topic(bootstrap_servers: str, name: str) -> KafkaTopic:
    """Return a client of a metadata topic with the catalogue's number of partitions."""
    return KafkaTopic({"bootstrap.servers": bootstrap_servers}, _shape(name))


def _shape(name: str) -> TopicSettings:
    return TopicSettings(name=name, partition_count=METADATA_PARTITIONS, replication_factor=1)


def create_topic(client: Mapping[str, str], shape: TopicSettings) -> None:
    """Create a metadata topic as the manager does, and wait until the client knows it."""
    topic = KafkaTopic(client, shape)
    try:
        wait_until(
            lambda: topic.ensure(create=True),
            _TIMEOUT_S,
            "the metadata topic exists",
            despite=RetriableError,
        )
    finally:
        topic.close()


def fill_topic(cluster: KafkaCluster, name: str, segments: int) -> None:
    """Create the topic as the manager does, and write the records of `segments` segments."""
    create_topic({"bootstrap.servers": cluster.bootstrap_servers}, _shape(name))
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,  # Without it, a retry can write a record twice.
            "linger.ms": 20,
            "log_level": 3,
        }
    )

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"cannot write a record to {message.topic()}: {error}")

    for each in records(segments):
        value, key, partition = each.record.value, each.record.key, each.partition
        while True:
            try:
                producer.produce(name, value, key, partition=partition, on_delivery=delivered)
            except BufferError:
                producer.poll(0.1)
            else:
                break
        producer.poll(0)
    if producer.flush(_TIMEOUT_S):
        raise RuntimeError(
            f"cannot fill {name}: the broker did not acknowledge all records in {_TIMEOUT_S} s"
        )
