"""A topic of small segments, the older ones in the store alone, and its written records."""

from __future__ import annotations

import random
from collections.abc import Mapping
from uuid import uuid4

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported without __all__

from rlm.source.logdir import LogDirSource
from rlmm.events.policy import UNLIMITED, PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.offload_settings import OffloadMode
from rsm.system_clock import SystemClock
from tests.e2e.broker_host import BrokerHost
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.waiting import wait_until

SEGMENT_BYTES = 1 << 20
VALUE_BYTES = 16_000
VALUES_PER_SEGMENT = SEGMENT_BYTES // VALUE_BYTES
_DEADLINE_S = 60.0
_ROLLOVER_MS = 1_000


class TieredTopic:
    """A topic; `values` has, by partition, the values that `produce` wrote, in offset order."""

    def __init__(self, cluster: KafkaCluster, name: str, *, partitions: int = 1) -> None:
        self.name = name
        self._cluster = cluster
        self.partition_count = partitions
        self.values: dict[int, list[bytes]] = {each: [] for each in range(partitions)}
        config = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"}
        cluster.create_topic(name, partitions=partitions, config=config)
        wait_until(
            lambda: len(self._found()) == partitions, describe="the broker has made the logs"
        )

    def produce(self, segments: int, *, partition: int = 0) -> None:
        """Write at least this many segments to one partition, in batches of a few records."""
        settings: dict[str, str | int] = {
            "enable.idempotence": True,
            "linger.ms": 5,
            "batch.num.messages": 5,
        }
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap_servers, **settings})
        for _ in range(segments * VALUES_PER_SEGMENT + 1):
            value = random.SystemRandom().randbytes(VALUE_BYTES)
            self.values[partition].append(value)
            producer.produce(self.name, value=value, partition=partition)
        assert producer.flush(30.0) == 0

    def partition(self, number: int = 0) -> TopicIdPartition:
        """Return a partition's identity, from the broker's own files."""
        return self._found()[number]

    def tier(self, host: BrokerHost, *, streamed: Mapping[int, int] | None = None) -> None:
        """Tier the topic, and trim the broker as far as possible.

        With `streamed`, then set the offload mode `stream`, write these numbers of segments by
        partition, and trim again.
        """
        with host.running() as _:
            host.wait_ready()
            with host.metadata() as metadata:
                self._set_policy(metadata, OffloadMode.SEGMENT)
                self._wait_trimmed(metadata)
                if streamed is not None:
                    self._set_policy(metadata, OffloadMode.STREAM)
                    for number, segments in streamed.items():
                        self.produce(segments, partition=number)
                    self._wait_trimmed(metadata)

    def local_start_offset(self, number: int = 0) -> int:
        """Return the local start offset that the broker reports."""
        admin = admin_client(self._cluster.bootstrap_servers)
        asked = TopicPartition(self.name, number)
        earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # ships untyped
        offset: int = admin.list_offsets({asked: earliest})[asked].result(30.0).offset
        return offset

    def _found(self) -> dict[int, TopicIdPartition]:
        source = LogDirSource(self._cluster.broker.log_dirs, clock=SystemClock())
        return {each.partition: each for each in source.partitions() if each.topic == self.name}

    def _base_offsets(self, number: int) -> list[int]:
        for log_dir in self._cluster.broker.log_dirs:
            found = (log_dir / f"{self.name}-{number}").glob("*.log")
            if bases := sorted(int(path.stem) for path in found):
                return bases
        return []

    def _wait_trimmed(self, metadata: RemoteLogMetadataManager) -> None:
        problem = ""

        def is_trimmed() -> bool:
            nonlocal problem
            problem = self._untrimmed(metadata)
            return not problem

        wait_until(is_trimmed, _DEADLINE_S, lambda: problem, despite=KafkaException)

    def _untrimmed(self, metadata: RemoteLogMetadataManager) -> str:
        """Return which partition is not trimmed yet; empty if all are."""
        for number, partition in self._found().items():
            bases = self._base_offsets(number)
            if len(bases) > 1 and self.local_start_offset(number) == 0:
                return f"{partition} is not trimmed"
            trimmed = metadata.partition_state(partition).trimmed_offset or 0
            newest_rolled = bases[-2] if len(bases) > 1 else 0
            if trimmed < newest_rolled or self.local_start_offset(number) < trimmed:
                return f"{partition} is trimmed to {trimmed}, newest rolled at {newest_rolled}"
        return ""

    def _set_policy(self, metadata: RemoteLogMetadataManager, mode: OffloadMode) -> None:
        policy = TopicPolicy(
            topic=self.name,
            topic_id=self.partition().topic_id,
            state=PolicyState.ACTIVE,
            retention_ms=UNLIMITED,
            retention_bytes=UNLIMITED,
            local_retention_ms=1,
            offload_mode=mode,
            offload_segment_max_bytes=SEGMENT_BYTES,
            offload_segment_rollover_ms=_ROLLOVER_MS,
        )
        assert metadata.publish(TopicPolicyChanged(event_id=uuid4(), policy=policy)).accepted
