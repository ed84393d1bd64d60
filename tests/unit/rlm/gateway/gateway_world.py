"""The context of a rewrite, for tests: a gateway's own metadata, stored segments, addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from rlm.config.values import HostPort
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlm.gateway.model.context import GatewayContext, QuerySettings
from rlm.gateway.model.tiered_topics import TieredTopics
from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.timestamps import RemoteTimestamps
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.events.log_start import LogStartRequested
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from tests.remote_world import TIP, WRITER, InlineExecutor, RemoteWorld
from tests.segment_builder import BuiltSegment, build_batch, build_segment, record

OWN = HostPort(host="gw-1.example", port=19092)
OTHER = HostPort(host="gw-2.example", port=19092)
TIERED = TieredTopics(
    id_by_name={TIP.topic: TIP.topic_id},
    name_by_id={TIP.topic_id: TIP.topic},
    managed=frozenset({TIP.topic}),
)
BASE_MS = 1_700_000_000_000


class CutTopic(MemoryTopic):
    """The metadata topic over a connection that can be cut, permanently or for some requests."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.is_cut = False
        self.failures_left = 0

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        self.failures_left -= self.failures_left > 0
        if self.is_cut or self.failures_left:
            raise RetriableError("the topic cannot be reached")
        return super().end_offsets(partitions)


class GatewayWorld:
    """One gateway next to one broker; TIP is tiered, nothing else is."""

    def __init__(self, topology: GatewayTopology | None = None) -> None:
        self.topology = topology or GatewayTopology(live={1: OWN, 2: OTHER})
        self.topics = TIERED
        self.remote = RemoteWorld()
        self.topic = CutTopic(self.remote.log)
        settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))
        self.metadata = TopicBasedRemoteLogMetadataManager(
            self.topic, MetadataCache(MemoryStore()), self.remote.clock, settings
        )
        assert self.metadata.wait_ready(10_000).is_ready

    def context(self) -> GatewayContext:
        remote = self.remote
        reader = RemoteLogReader(self.metadata, remote.storage, remote.executor)
        return GatewayContext(
            topology=self.topology,
            topics=self.topics,
            metadata=self.metadata,
            timestamps=RemoteTimestamps(self.metadata, reader),
            query_settings=QuerySettings(
                store=InlineExecutor(),
                topic=InlineExecutor(),
                clock=remote.clock,
                timeout_ms=8_000,
            ),
            new_id=remote._id,
        )

    def trim(self, offset: int, lineage: Lineage) -> None:
        event = LocalLogTrimmed(
            event_id=UUID(int=1 << 64 | offset),
            topic_id_partition=TIP,
            writer=WRITER,
            offset=offset,
            lineage=lineage,
        )
        assert self.remote.metadata.publish(event).accepted

    def request_log_start(self, offset: int) -> None:
        event = LogStartRequested(event_id=self.remote._id(), topic_id_partition=TIP, offset=offset)
        assert self.remote.metadata.publish(event).accepted


def single_records(*rows: tuple[int, int, int]) -> BuiltSegment:
    """Return a segment of one batch for each (offset, epoch, milliseconds after BASE_MS)."""
    return build_segment(
        [
            build_batch([record(offset, timestamp_ms=BASE_MS + after_ms)], leader_epoch=epoch)
            for offset, epoch, after_ms in rows
        ]
    )
