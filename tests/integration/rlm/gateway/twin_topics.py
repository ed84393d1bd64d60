"""Topics with a twin: the same log to the byte, of which one is tiered and trimmed, one is not.

The broker is stopped, finds the logs when it starts, and makes indexes, epochs and producers' state
from them. What it says of the twin itself is the truth about the other as seen through a gateway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from rlm.source.logdir import LogDirSource
from rlmm.events.policy import UNLIMITED, PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.system_clock import SystemClock
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.crafted_logs import CraftedLog
from tests.integration.rlm.gateway.raw_requests import list_offsets
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0
_EARLIEST = -2
# Messages older than leader epochs count as the first one's; later epochs are found in the log.
_FIRST_EPOCH = "0\n1\n0 0\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """One log, in two topics of one partition."""

    log: CraftedLog
    tiered: TopicIdPartition
    whole: TopicIdPartition


class TwinTopics:
    """By the names they were given; `host` is the broker's, with the store."""

    def __init__(self, host: BrokerHost, twins: Mapping[str, Twin]) -> None:
        self.host = host
        self._twins = twins

    def __getitem__(self, name: str) -> Twin:
        return self._twins[name]

    def of(self, *names: str) -> list[Twin]:
        """Several."""
        return [self._twins[name] for name in names]


def make_twins(host: BrokerHost, logs: Mapping[str, CraftedLog]) -> TwinTopics:
    """Restart the host's cluster with these logs, and have one of each two tiered and trimmed."""
    cluster = host.cluster
    for name in logs:
        for topic in (name, _whole(name)):
            cluster.create_topic(topic, config={"retention.ms": "-1"})
    names = {topic for name in logs for topic in (name, _whole(name))}
    wait_until(lambda: names <= set(_partitions(cluster)), describe="the broker has the logs")
    found = _partitions(cluster)
    cluster.stop()
    for name, log in logs.items():
        for topic in (name, _whole(name)):
            _write(_directory(cluster, topic), log)
    cluster.start()
    twins = {
        name: Twin(log=log, tiered=found[name], whole=found[_whole(name)])
        for name, log in logs.items()
    }
    _tier(host, twins)
    return TwinTopics(host, twins)


def _whole(name: str) -> str:
    return f"{name}-whole"


def _partitions(cluster: KafkaCluster) -> dict[str, TopicIdPartition]:
    source = LogDirSource(cluster.broker.log_dirs, clock=SystemClock())
    return {each.topic: each for each in source.partitions()}


def _directory(cluster: KafkaCluster, topic: str) -> Path:
    (log_dir,) = cluster.broker.log_dirs
    return log_dir / f"{topic}-0"


def _write(directory: Path, log: CraftedLog) -> None:
    """Leave nothing of the old log but the topic's identity; missing indexes are made again."""
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (directory / "leader-epoch-checkpoint").write_text(_FIRST_EPOCH)
    for base_offset, data in log.segments:
        (directory / f"{base_offset:020}.log").write_bytes(data)


def _tier(host: BrokerHost, twins: Mapping[str, Twin]) -> None:
    with host.running() as _:
        host.wait_ready()
        with host.metadata() as metadata, WireClient(host.cluster.broker.address) as client:
            for twin in twins.values():
                publish_policy(metadata, twin.tiered.topic, twin.tiered.topic_id)
            wait_until(
                lambda: not _untrimmed(client, metadata, twins),
                _DEADLINE_S,
                lambda: _untrimmed(client, metadata, twins),
            )


def _untrimmed(
    client: WireClient, metadata: RemoteLogMetadataManager, twins: Mapping[str, Twin]
) -> str:
    """What is still to be done; empty if nothing is."""
    for twin in twins.values():
        target = twin.log.local_start_offset
        trimmed = metadata.partition_state(twin.tiered).trimmed_offset
        start = list_offsets(client, twin.tiered.topic, 4, _EARLIEST).offset
        if (trimmed, start) != (target, target):
            return f"{twin.tiered.topic}: trimmed {trimmed}, starts {start}, wanted {target}"
    return ""


def publish_policy(metadata: RemoteLogMetadataManager, topic: str, topic_id: UUID) -> None:
    """Have a topic tiered: what is stored is trimmed at once, and never expires."""
    policy = TopicPolicy(
        topic=topic,
        topic_id=topic_id,
        state=PolicyState.ACTIVE,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
        local_retention_ms=1,
    )
    assert metadata.publish(TopicPolicyChanged(event_id=uuid4(), policy=policy)).accepted
