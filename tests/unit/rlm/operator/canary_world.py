"""A cluster in memory for the end-to-end check: brokers, gateways and managers.

Managers work when they are woken. Failures are set per broker or gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from rlm.broker.cluster import BrokerAddress, ClusterView, PartitionReplicas, TopicView
from rlm.broker.topics.canary_topics import CanaryTopics
from rlm.broker.topics.default_retention import DefaultRetention
from rlm.broker.topics.topic_admin import LogSpan, TopicAdmin, TopicOnReplicas
from rlm.facts.canary_records import CanaryRead, CanaryRecord, CanaryWritten
from rlm.facts.topic_configs import ConfigValue, TopicConfigs
from rlm.operator.end_to_end import CheckSettings, CheckTools, EndToEndCheck
from rlm.policy.blocked import Blocked
from rlm.policy.request.canary import CheckRow
from rlm.topics.broker_retention import BrokerRetention
from rlm.topics.enable import Tiering
from rlm.topics.policy_writer import PolicyWriter
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.registration import ProcessReadiness, ProcessRegistered, ProcessRole
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    claim,
    segment_metadata,
    step,
    writer,
)

TOPIC_ID = UUID(int=0xCA)
WAIT_MS = 120_000


def process(
    role: ProcessRole,
    broker_id: int,
    address: str,
    *,
    unready: tuple[str, ...] = (),
) -> ProcessRegistered:
    """Return the registration of a process at `address`."""
    is_gateway = role is ProcessRole.GATEWAY
    return ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=broker_id),
        role=role,
        broker_id=broker_id,
        http_address="" if is_gateway else address,
        heartbeat_interval_ms=1_000,
        version="1",
        gateway_address=address if is_gateway else "",
        readiness=ProcessReadiness.NOT_READY if unready else ProcessReadiness.READY,
        unready_reasons=unready,
    )


@dataclass
class CanaryWorld(TopicAdmin, CanaryTopics):
    """Three brokers, each with a manager and a gateway; broker N and its processes are at 10.0.0.N.

    A client reaches a partition through the gateway of its leader. If that broker has no gateway,
    the client uses the first gateway of the others.
    """

    node_ids: tuple[int, ...] = (1, 2, 3)
    managers: dict[int, ProcessRegistered] = field(default_factory=dict)
    gateways: dict[int, ProcessRegistered] = field(default_factory=dict)
    unreachable_gateways: set[int] = field(default_factory=set)
    idle_managers: set[int] = field(default_factory=set)
    trim_blocked: dict[int, Blocked] = field(default_factory=dict)
    unknown_configs: frozenset[str] = frozenset()
    unreachable_managers: set[int] = field(default_factory=set)
    never_delete: bool = False
    corrupting_gateway: int | None = None
    created: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    logs: dict[int, list[CanaryRecord]] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    rows: list[CheckRow] = field(default_factory=list)
    refuse_create: TieredStorageError | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    overrides: dict[str, str] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: iter(range(1_000, 1_000_000)))

    def __post_init__(self) -> None:
        for node_id in self.node_ids:
            host = f"10.0.0.{node_id}"
            self.managers[node_id] = process(ProcessRole.MANAGER, node_id, f"{host}:9465")
            self.gateways[node_id] = process(ProcessRole.GATEWAY, node_id, f"{host}:19092")
        self.metadata = TopicBasedRemoteLogMetadataManager(
            MemoryTopic(MemoryLog(self.clock)),
            MetadataCache(MemoryStore()),
            self.clock,
            ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0)),
        )
        assert self.metadata.wait_ready(1000).is_ready

    def check(self, *, wait_ms: int = WAIT_MS, keep: bool = False) -> EndToEndCheck:
        """Return a check of this cluster, which appends its rows to `rows`."""
        tools = CheckTools(
            topics=self,
            canaries=self,
            tiering=Tiering(
                PolicyWriter(self.metadata, self.new_id),
                BrokerRetention(self, self.clock),
                self.clock,
                own_topics=frozenset(),
                progress=lambda _text: None,
                recall=lambda *_: None,
            ),
            metadata=self.metadata,
            managers=self,
            live=self._live,
            clock=self.clock,
            new_id=self.new_id,
        )
        settings = CheckSettings(
            wait_ms=wait_ms, keep=keep, unique="cafe", max_replicas=3, trim_min_age_ms=900_000
        )
        return EndToEndCheck(tools, settings, self.rows.append)

    def new_id(self) -> UUID:
        return UUID(int=next(self._ids))

    def _live(self, role: ProcessRole) -> Sequence[ProcessRegistered]:
        found = self.managers if role is ProcessRole.MANAGER else self.gateways
        return [found[node_id] for node_id in sorted(found)]

    # Managers

    def problem(self, manager: ProcessRegistered) -> str:
        return "no answer" if manager.broker_id in self.unreachable_managers else ""

    def wake(self) -> None:
        for number, node_id in enumerate(self.node_ids):
            if node_id in self.managers and node_id not in self.idle_managers:
                self._work(number, node_id)

    def blocked(self, topic: str) -> Mapping[int, tuple[Blocked | None, Blocked | None]]:
        return {n: (None, self.trim_blocked.get(each)) for n, each in enumerate(self.node_ids)}

    def _work(self, number: int, node_id: int) -> None:
        (name,) = self.created
        tip = TopicIdPartition(topic_id=TOPIC_ID, topic=name, partition=number)
        state = self.metadata.partition_state(tip)
        owner = writer(broker_id=node_id)
        if state.owner is None:
            self.metadata.publish(claim(owner, partition=tip))
        if any(request.offset for request in state.log_start_requests):
            self._delete(tip)
            return
        stored = len(list(self.metadata.list_remote_log_segments(tip)))
        for offset in range(stored, len(self.logs.get(number, ())) - 1):
            segment = segment_metadata(
                1_000 * (number + 1) + offset, offset, offset + 1, partition=tip, by=owner
            )
            for event in (step(segment, segment.state), step(segment, FINISHED)):
                assert self.metadata.publish(event).accepted
        if node_id not in self.trim_blocked:
            self.starts[number] = max(0, len(self.logs.get(number, ())) - 2)

    def _delete(self, tip: TopicIdPartition) -> None:
        if self.never_delete:
            return
        owner = writer(broker_id=self.node_ids[tip.partition])
        for record in list(self.metadata.list_remote_log_segments(tip)):
            for state, expected in ((DELETE_STARTED, FINISHED), (DELETE_FINISHED, None)):
                event = step(record.metadata, state, by=owner, expected_state=expected)
                assert self.metadata.publish(event).accepted

    # CanaryTopics

    def names(self, timeout_ms: int) -> Sequence[str]:
        return [*self.created, "orders", "rlm-canary-1-dead"]

    def create(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        timeout_ms: int,
    ) -> None:
        if self.refuse_create is not None:
            raise self.refuse_create
        if not self.unknown_configs.isdisjoint(configs):
            raise RetriableError("unknown topic config name", error="INVALID_CONFIG")
        self.created[name] = tuple(tuple(each) for each in replicas)
        self.overrides = dict(configs)

    def delete(self, name: str, timeout_ms: int) -> None:
        self.deleted.append(name)

    def write(
        self, address: str | None, topic: str, records: Iterable[CanaryRecord], timeout_ms: int
    ) -> CanaryWritten:
        positions = {}
        absent = []
        for record in records:
            if address is not None and self._gateway_of(record.partition) is None:
                absent.append(record.partition)
                continue
            log = self.logs.setdefault(record.partition, [])
            positions[record.partition, len(log)] = record.value
            log.append(record)
        if absent:
            self.clock.sleep_ms(timeout_ms)
        problem = f"cannot write records (partitions: {absent}): timed out" if absent else ""
        return CanaryWritten(positions=positions, problem=problem)

    def read(
        self, address: str | None, topic: str, ends: Mapping[int, int], timeout_ms: int
    ) -> CanaryRead:
        found = {}
        absent = [number for number in ends if self._gateway_of(number) is None]
        corrupting = self.gateways.get(self.corrupting_gateway or 0)
        for number in set(ends) - set(absent):
            for offset, record in enumerate(self.logs.get(number, ())):
                found[number, offset] = record.value
                if corrupting is not None and corrupting.gateway_address == address:
                    found[number, offset] = b"other"
        problem = f"cannot read all records (partitions: {absent}): timed out" if absent else ""
        return CanaryRead(found=found, earliest=dict.fromkeys(ends, 0), problem=problem)

    def _gateway_of(self, number: int) -> ProcessRegistered | None:
        """Return the gateway through which a client reaches the partition's leader."""
        node_id = self.node_ids[number]
        if node_id in self.unreachable_gateways:
            return None
        return self.gateways.get(node_id) or next(iter(self.gateways.values()), None)

    # TopicAdmin

    def view(self, topics: Iterable[str] | None) -> ClusterView:
        brokers = {
            n: BrokerAddress(node_id=n, host=f"10.0.0.{n}", port=9092) for n in self.node_ids
        }
        wanted = self.created if topics is None else topics
        known = {name: self._topic(name) for name in wanted if name in self.created}
        return ClusterView(
            cluster_id="memory", controller_id=1, brokers=brokers, topics=known, refused={}
        )

    def on_replicas(self, topic: str) -> TopicOnReplicas:
        defaults = {
            "retention.ms": "1",
            "retention.bytes": "-1",
            "cleanup.policy": "delete",
            "remote.storage.enable": "false",
        }
        entries = {
            name: ConfigValue(value=self.overrides.get(name, value), is_override=False)
            for name, value in defaults.items()
        }
        configs = TopicConfigs(topic=topic, entries=entries)
        return TopicOnReplicas(
            topic=self._topic(topic), configs=dict.fromkeys(self.node_ids, configs)
        )

    def configs_at(
        self, node_id: int, topics: Iterable[str]
    ) -> Mapping[str, TopicConfigs | TieredStorageError]:
        return {topic: self.on_replicas(topic).configs[node_id] for topic in topics}

    def default_retention(self, node_id: int) -> DefaultRetention:
        return DefaultRetention(retention_ms=1, retention_bytes=-1)

    def alter(self, topic: str, changes: Mapping[str, str | None]) -> None:
        self.overrides.update({name: value for name, value in changes.items() if value is not None})

    def log_spans(self, topic: TopicView, since_ms: int) -> Mapping[TopicIdPartition, LogSpan]:
        spans = {}
        for each in topic.partitions:
            tip = TopicIdPartition(topic_id=TOPIC_ID, topic=topic.topic, partition=each.partition)
            end = len(self.logs.get(each.partition, ()))
            spans[tip] = LogSpan(
                local_start_offset=self.starts.get(each.partition, 0),
                high_watermark=end,
                since_offset=end,
            )
        return spans

    def _topic(self, name: str) -> TopicView:
        if name not in self.created:
            raise RetriableError("no such topic", topic=name)
        partitions = tuple(
            PartitionReplicas(
                partition=number, leader_id=each[0], leader_epoch=0, replicas=each, isr=each
            )
            for number, each in enumerate(self.created[name])
        )
        return TopicView(topic=name, topic_id=TOPIC_ID, is_internal=False, partitions=partitions)
