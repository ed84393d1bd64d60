"""Topics with a twin: both have the same log byte for byte, but only one is tiered and trimmed.

The stored segments of each topic have different layouts. A streamed topic has one stored segment,
of block_v2: the ledgers in it are the broker's log segments.

The broker is stopped. When it starts, it finds the logs and builds indexes, epochs and producers'
state from them. Its answers for the untiered twin are the expected ones for the other topic through
a gateway.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from rlm.source.logdir import LogDirSource
from rlmm.events.policy import UNLIMITED, PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.spi import RemoteLogMetadataManager
from rsm.config.choices import Layout
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.offload_settings import OFFLOAD_SEGMENT_SHORTEST_MS, OffloadMode
from rsm.system_clock import SystemClock
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.crafted_logs import CraftedLog
from tests.integration.rlm.gateway.mixed_layouts import LAYOUTS, mixed_layouts
from tests.integration.rlm.gateway.raw_requests import list_offsets
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0
_EARLIEST = -2
# Messages from before leader epochs belong to the first epoch; the log has the later epochs.
_FIRST_EPOCH = "0\n1\n0 0\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """One log, in two topics of one partition.

    A streamed topic is stored up to its last stable offset, others up to their active segment.
    """

    log: CraftedLog
    tiered: TopicIdPartition
    whole: TopicIdPartition
    is_streamed: bool = False

    @property
    def stored_end_offset(self) -> int:
        """Return the end of what is stored."""
        return self.log.last_stable_offset if self.is_streamed else self.log.segments[-1][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offload:
    """The offload mode and the layout of a topic."""

    mode: OffloadMode
    layout: str | None = None


_COPIED = _Offload(mode=OffloadMode.SEGMENT)
_STREAMED = _Offload(mode=OffloadMode.STREAM, layout=Layout.BLOCK_V2.value)


class TwinTopics:
    """Twins by their names; `host` is the broker's host, with the store."""

    def __init__(self, host: BrokerHost, twins: Mapping[str, Twin]) -> None:
        self.host = host
        self._twins = twins

    def __getitem__(self, name: str) -> Twin:
        return self._twins[name]

    def of(self, *names: str) -> list[Twin]:
        """Return the twins of these names."""
        return [self._twins[name] for name in names]


def make_twins(
    host: BrokerHost, logs: Mapping[str, CraftedLog], *, streamed: Collection[str] = ()
) -> TwinTopics:
    """Restart the host's cluster with these logs; tier and trim one topic of each twin.

    The logs named in `streamed` are stored by streams.
    """
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
        name: Twin(
            log=log,
            tiered=found[name],
            whole=found[_whole(name)],
            is_streamed=name in streamed,
        )
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
    """Replace the log, and keep only the topic's identity; the broker rebuilds missing indexes."""
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (directory / "leader-epoch-checkpoint").write_text(_FIRST_EPOCH)
    for base_offset, data in log.segments:
        (directory / f"{base_offset:020}.log").write_bytes(data)


def _tier(host: BrokerHost, twins: Mapping[str, Twin]) -> None:
    copied = [twin for twin in twins.values() if not twin.is_streamed]
    streamed = [twin for twin in twins.values() if twin.is_streamed]
    with mixed_layouts(host):
        _store_and_trim(host, copied)
    if streamed:
        _store_and_trim(host, streamed)
    with host.metadata() as metadata:
        for twin in twins.values():
            stored = _stored(metadata, twin)
            assert stored[-1].offsets.end_offset == twin.stored_end_offset
            layouts = [each.layout for each in stored]
            wanted = 1 if twin.is_streamed else min(len(layouts), len(LAYOUTS))
            assert len(set(layouts)) == wanted, layouts
            assert not twin.is_streamed or layouts == [_STREAMED.layout], layouts


def _store_and_trim(host: BrokerHost, twins: Sequence[Twin]) -> None:
    with (
        host.running(),
        host.metadata() as metadata,
        WireClient(host.cluster.broker.address) as client,
    ):
        host.wait_ready()
        for twin in twins:
            changes = _STREAMED if twin.is_streamed else _COPIED
            publish_policy(metadata, twin.tiered.topic, twin.tiered.topic_id, changes)
        wait_until(
            lambda: not _untrimmed(client, metadata, twins),
            _DEADLINE_S,
            lambda: _untrimmed(client, metadata, twins),
        )


def _untrimmed(
    client: WireClient, metadata: RemoteLogMetadataManager, twins: Sequence[Twin]
) -> str:
    """Return which topic is not stored and trimmed yet; empty if none."""
    for twin in twins:
        target = twin.log.local_start_offset
        trimmed = metadata.partition_state(twin.tiered).trimmed_offset
        start = list_offsets(client, twin.tiered.topic, 4, _EARLIEST).offset
        if (trimmed, start) != (target, target):
            return f"{twin.tiered.topic}: trimmed {trimmed}, starts {start}, wanted {target}"
        if _stored(metadata, twin)[-1].offsets.end_offset < twin.stored_end_offset:
            return f"{twin.tiered.topic}: not all is stored"
    return ""


def _stored(metadata: RemoteLogMetadataManager, twin: Twin) -> list[RemoteLogSegmentMetadata]:
    records = metadata.list_remote_log_segments(
        twin.tiered, states=(SegmentState.COPY_SEGMENT_FINISHED,)
    )
    return [record.metadata for record in records]


def publish_policy(
    metadata: RemoteLogMetadataManager, topic: str, topic_id: UUID, offload: _Offload = _COPIED
) -> None:
    """Tier a topic: stored data is trimmed at once and never expires."""
    policy = TopicPolicy(
        topic=topic,
        topic_id=topic_id,
        state=PolicyState.ACTIVE,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
        local_retention_ms=1,
        offload_mode=offload.mode,
        offload_segment_rollover_ms=OFFLOAD_SEGMENT_SHORTEST_MS,
        layout=offload.layout,
    )
    assert metadata.publish(TopicPolicyChanged(event_id=uuid4(), policy=policy)).accepted
