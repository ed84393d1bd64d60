"""Runs Kafka's own tiering (KIP-405) as a peer: a broker with LocalTieredStorage.

LocalTieredStorage is a test class of Kafka: it copies files into a directory, without fsync. The
broker has the same records in a tiered topic, and reads back the records that it has trimmed.

For each fetch, the broker opens the segment's file, skips to the position, and reads as much as the
client requests into a new buffer on its heap (`RemoteLogManager.read`). G1 allocates such buffers
as humongous objects. Each write to the socket first copies all unsent bytes
(`sun.nio.ch.IOUtil.write`). How many writes a response needs depends on when the scheduler runs the
client. So the throughput varies between runs, and falls as fetches grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.dataset import Dataset, fill_topic
from bench.gateway.processes import ProcessGroup, process_tree
from bench.gateway.stage import TIERED, GatewayStage, wait_trimmed
from rsm.segment.ranges import OffsetRange
from tests.services.kafka import KafkaCluster
from tests.services.service import Needs, installed

_JARS = Path(__file__).resolve().parents[2] / "build" / "kafka-tiering"
NEEDS = Needs(installed=(_JARS,))
_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTiering:
    """Represents the peer; only its store contains the offsets `trimmed` of its tiered topic."""

    dataset: Dataset
    trimmed: OffsetRange

    @property
    def address(self) -> str:
        return self.dataset.cluster.bootstrap_servers

    @property
    def broker(self) -> ProcessGroup:
        return process_tree(self.dataset.cluster.broker.pid)


@contextmanager
def running_kafka_tiering(stage: GatewayStage) -> Iterator[KafkaTiering]:
    """Yield a separate broker on this host. Raises ServiceMissingError if the jar is missing."""
    directory = stage.dataset.scratch / "kafka-tiering"
    store = directory / "store"
    store.mkdir(parents=True)
    properties = _broker_properties(store)
    sizes = stage.sizes
    with KafkaCluster(directory, properties=properties, jvm_flags=sizes.jvm_flags) as cluster:
        dataset = Dataset(cluster=cluster, scratch=directory, sizes=sizes.data)
        topic = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
        fill_topic(cluster, TIERED, sizes.data, topic)
        yield KafkaTiering(dataset=dataset, trimmed=wait_trimmed(dataset))


def _broker_properties(store: Path) -> dict[str, str]:
    jars = sorted(Path(installed(_JARS)).glob("kafka-storage-*-test.jar"))
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.storage.manager.class.path": str(jars[-1]),
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": str(store),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "remote.log.manager.task.interval.ms": "500",
    }
