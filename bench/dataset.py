"""Starts a real broker and fills a partition with rolled segments, for most benchmarks.

Record values are incompressible, and their default size is 1 KiB. librdkafka forms the batches, so
these are as large as those of a busy producer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from confluent_kafka import Producer

from rlm.source.logdir import LogDirSource
from rsm.segment.ids import TopicIdPartition
from rsm.system_clock import SystemClock
from tests.services.kafka import KafkaCluster

TOPIC = "bench"
# These flags set the heap and collector as Kafka's start script does, and the default compilers of
# the JVM. With the tests' flags, brokers start faster, but run slower.
JVM_OF_KAFKA = (
    "-Xms1g",
    "-Xmx1g",
    "-XX:TieredStopAtLevel=4",
    "-XX:-UseSerialGC",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
)
_BUILD = Path(__file__).resolve().parents[1] / "build"
_FLUSH_TIMEOUT_S = 120.0
_POOL_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSizes:
    """Represents the sizes of the data, the number of runs, and the number of segments to read."""

    total_bytes: int = 1 << 30
    segment_bytes: int = 64 << 20
    record_bytes: int = 1024
    runs: int = 5
    read_segments: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Represents a filled broker, a directory on its file system, and the sizes of the data."""

    cluster: KafkaCluster
    scratch: Path
    sizes: BenchSizes

    def source(self) -> LogDirSource:
        """Return the manager's reader for the broker's log dirs."""
        return LogDirSource(self.cluster.broker.log_dirs, clock=SystemClock())

    def partition(self, topic: str = TOPIC) -> TopicIdPartition:
        """Return a topic's only partition, with the topic's id."""
        (found,) = [each for each in self.source().partitions() if each.topic == topic]
        return found


@contextmanager
def produced_dataset(sizes: BenchSizes, *, jvm_flags: tuple[str, ...] = ()) -> Iterator[Dataset]:
    """Yield a broker with a filled topic; stop it and remove its files at the end."""
    _BUILD.mkdir(exist_ok=True)
    with (
        TemporaryDirectory(prefix="bench-", dir=_BUILD) as directory,
        KafkaCluster(Path(directory) / "kafka", jvm_flags=jvm_flags) as cluster,
    ):
        fill_topic(cluster, TOPIC, sizes)
        yield Dataset(cluster=cluster, scratch=Path(directory), sizes=sizes)


def fill_topic(
    cluster: KafkaCluster,
    topic: str,
    sizes: BenchSizes,
    config: Mapping[str, str] | None = None,
    *,
    partitions: int = 1,
    create: bool = True,
) -> None:
    """Create a topic unless `create` is false, and fill its partitions evenly.

    The same sizes and number of partitions always give the same records. `config` overrides topic
    settings. Raises RuntimeError if the broker does not acknowledge all records in time.
    """
    segments = {"segment.bytes": str(sizes.segment_bytes)}
    if create:
        given = {**segments, **(config or {})}
        cluster.create_topic(topic, partitions=partitions, config=given)
    servers = cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 3})
    random = Random(1)
    pool = random.randbytes(_POOL_BYTES)
    for number in range(sizes.total_bytes // sizes.record_bytes):
        start = random.randrange(_POOL_BYTES - sizes.record_bytes)
        value = pool[start : start + sizes.record_bytes]
        _hand_over(producer, topic, value, number % partitions)
    if producer.flush(_FLUSH_TIMEOUT_S):
        raise RuntimeError(
            f"cannot fill {topic}: the broker did not acknowledge all records "
            f"in {_FLUSH_TIMEOUT_S} s"
        )


def _hand_over(producer: Producer, topic: str, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
