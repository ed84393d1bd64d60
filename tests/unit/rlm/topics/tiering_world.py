"""A cluster of brokers that learn of changes late, and a metadata topic, all in memory.

`World.effects` records every effect. It can crash the process before or after the n-th one, which
leaves what a killed process leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from rlm.broker.cluster import BrokerAddress, ClusterView, PartitionReplicas, TopicView
from rlm.broker.topics.default_retention import DefaultRetention
from rlm.broker.topics.topic_admin import LogSpan, TopicAdmin, TopicOnReplicas
from rlm.facts.topic_configs import ConfigValue, TopicConfigs
from rlm.policy.candidates import Lag
from rlm.policy.topic.policy_values import FileDefaults
from rlm.topics.broker_retention import BrokerRetention
from rlm.topics.disable import TieringEnd
from rlm.topics.enable import Activation, Tiering
from rlm.topics.inheritance import PolicyInheritance
from rlm.topics.level_effects import LevelEffects
from rlm.topics.lost_policy import Recall
from rlm.topics.policy_writer import PolicyWriter
from rlm.topics.retention_guard import RetentionKeeper
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.policy import TopicPolicy, TopicPolicyChanged, topic_policy
from rlmm.events.policy_level import PolicyLevel, PolicyLevelSet
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.event_topic import PublishedPosition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import NotFoundError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from tests.log_dir_builder import ManualClock

TOPIC = "orders"
TOPIC_ID = UUID(int=7)
TIP = TopicIdPartition(topic_id=TOPIC_ID, topic=TOPIC, partition=0)
WEEK_MS = 604_800_000
TIMEOUT_MS = 30_000
DEFAULTS = {
    "retention.ms": str(WEEK_MS),
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "remote.storage.enable": "false",
}
PUBLISH, ALTER = "publish", "alter"


class CrashError(Exception):
    """The process is gone."""


@dataclass
class Effects:
    """The effects on the world, in order, and where to crash."""

    log: list[str] = field(default_factory=list)
    crash_before: int | None = None
    crash_after: int | None = None

    def begin(self, effect: str) -> None:
        if self.crash_before == len(self.log):
            raise CrashError(effect)
        self.log.append(effect)

    def end(self) -> None:
        if self.crash_after is not None and self.crash_after < len(self.log):
            raise CrashError(self.log[-1])


class CrashingTopic(MemoryTopic):
    """The metadata topic, seen by a process that may be killed as it writes."""

    def __init__(self, log: MemoryLog, effects: Effects) -> None:
        super().__init__(log)
        self._effects = effects

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        self._effects.begin(PUBLISH)
        written = super().publish(partition, key, value)
        self._effects.end()
        return written


class MemoryTopicAdmin(TopicAdmin):
    """One topic on several brokers. The first one shows a change at once.

    The others show it after `lag_asks` requests.
    """

    def __init__(self, effects: Effects, *, node_ids: tuple[int, ...] = (1, 2)) -> None:
        self.effects = effects
        self.node_ids = node_ids
        self.overrides: dict[str, str] = {}
        self.lag_asks = 0
        self.unknown_asks = 0
        self.configs_error: TieredStorageError | None = None
        self.when_asked: Callable[[], object] = lambda: None
        self.span = LogSpan(local_start_offset=0, high_watermark=0, since_offset=0)
        self.stale = dict.fromkeys(node_ids, self.overrides)
        self._asks_left = dict.fromkeys(node_ids, 0)

    def view(self, topics: Iterable[str] | None) -> ClusterView:
        known = {TOPIC: self._topic()} if topics is None or TOPIC in set(topics) else {}
        brokers = {n: BrokerAddress(node_id=n, host="broker", port=9092) for n in self.node_ids}
        return ClusterView(
            cluster_id="memory", controller_id=1, brokers=brokers, topics=known, refused={}
        )

    def on_replicas(self, topic: str) -> TopicOnReplicas:
        if self.unknown_asks:
            self.unknown_asks -= 1
            raise NotFoundError("the broker has no such topic or partition", topic=topic)
        if topic != TOPIC:
            raise NotFoundError("the broker has no such topic or partition", topic=topic)
        configs = {node_id: self._configs(node_id) for node_id in self.node_ids}
        return TopicOnReplicas(topic=self._topic(), configs=configs)

    def configs_at(
        self, node_id: int, topics: Iterable[str]
    ) -> Mapping[str, TopicConfigs | TieredStorageError]:
        self.when_asked()
        configs_error = self.configs_error
        return {topic: configs_error or self._configs(node_id) for topic in topics}

    def default_retention(self, node_id: int) -> DefaultRetention:
        return DefaultRetention(retention_ms=WEEK_MS, retention_bytes=-1)

    def alter(self, topic: str, changes: Mapping[str, str | None]) -> None:
        self.effects.begin(ALTER)
        self.set(changes)
        self.effects.end()

    def set(self, changes: Mapping[str, str | None]) -> None:
        """Change the topic's settings, as any client may."""
        for node_id in self.node_ids:
            self.stale[node_id] = dict(self.overrides)
            # The first broker is also the controller, and knows the change at once.
            self._asks_left[node_id] = 0 if node_id == self.node_ids[0] else self.lag_asks
        for name, value in changes.items():
            self.overrides.pop(name, None)
            if value is not None:
                self.overrides[name] = value

    def log_spans(self, topic: TopicView, since_ms: int) -> Mapping[TopicIdPartition, LogSpan]:
        return {TIP: self.span}

    def _configs(self, node_id: int) -> TopicConfigs:
        behind = self._asks_left[node_id] > 0
        if behind:
            self._asks_left[node_id] -= 1
        own = self.stale[node_id] if behind else self.overrides
        entries = {
            name: ConfigValue(value=own.get(name, default), is_override=name in own)
            for name, default in DEFAULTS.items()
        }
        return TopicConfigs(topic=TOPIC, entries=entries)

    def _topic(self) -> TopicView:
        partition = PartitionReplicas(
            partition=0,
            leader_id=self.node_ids[0],
            leader_epoch=0,
            replicas=self.node_ids,
            isr=self.node_ids,
        )
        return TopicView(topic=TOPIC, topic_id=TOPIC_ID, is_internal=False, partitions=(partition,))


@dataclass
class StatedLags:
    """Managers with scripted answers."""

    stated: dict[TopicIdPartition, Lag] = field(default_factory=dict)
    asked_of: list[TopicPolicy] = field(default_factory=list)

    def lags(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, Lag]:
        self.asked_of.append(policy)
        return dict(self.stated)

    def silence(self, tip: TopicIdPartition) -> str:
        return f"the manager of broker 1 does not answer of {tip.partition}"


class World:
    """The cluster that outlives processes; `process` is one of them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.effects = Effects()
        self.topics = MemoryTopicAdmin(self.effects)
        self.lags = StatedLags(stated={TIP: Lag(segments=0, bytes=0)})
        self.log = MemoryLog(self.clock)
        self.recall: Recall = lambda *_: None
        self._ids: Iterator[int] = iter(range(1, 1_000_000))

    def process(self) -> Process:
        """Return a process that has just started and read all metadata."""
        return Process(self)

    def new_id(self) -> UUID:
        return UUID(int=next(self._ids))

    def restart(self) -> Process:
        """Return the next process, with no crash planned."""
        self.effects.crash_before = self.effects.crash_after = None
        return self.process()


class Process:
    """One process: its view of the metadata, and the tasks composed over it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.metadata = TopicBasedRemoteLogMetadataManager(
            CrashingTopic(world.log, world.effects),
            MetadataCache(MemoryStore()),
            world.clock,
            ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0)),
        )
        assert self.metadata.wait_ready(1000).is_ready
        self.when_shown: Callable[[str], None] | None = None
        self.alarms: list[str] = []
        self.policies = PolicyWriter(self.metadata, world.new_id)
        self.retention = BrokerRetention(world.topics, world.clock)
        self.activation = Activation(self.policies, self.retention)
        self.tiering = Tiering(
            self.policies,
            self.retention,
            world.clock,
            own_topics=frozenset({"ours"}),
            progress=self.show,
            recall=world.recall,
        )
        self.ending = TieringEnd(
            self.tiering,
            self.policies,
            self.retention,
            topics=world.topics,
            metadata=self.metadata,
            lags=world.lags,
            clock=world.clock,
            progress=self.show,
        )

    def show(self, text: str) -> None:
        if self.when_shown is not None:
            self.when_shown(text)

    def keeper(self, *, node_id: int = 1, reassert: bool = True) -> RetentionKeeper:
        return RetentionKeeper(
            self.activation,
            topics=self.world.topics,
            metadata=self.metadata,
            node_id=node_id,
            reassert=reassert,
            alarm=self.alarms.append,
        )

    def inheritance(
        self, *, node_id: int = 1, managers: FileDefaults | None = None
    ) -> PolicyInheritance:
        effects = LevelEffects(
            self.world.topics,
            recall=self.world.recall,
            own_topics=frozenset({"ours"}),
            managers=managers or FileDefaults(),
        )
        return PolicyInheritance(
            effects,
            self.policies,
            topics=self.world.topics,
            metadata=self.metadata,
            node_id=node_id,
        )

    def set_level(self, level: PolicyLevel) -> None:
        """Set a policy level, as a command does."""
        event = PolicyLevelSet(event_id=self.world.new_id(), level=level)
        assert self.metadata.publish(event).accepted

    def policy(self) -> TopicPolicy:
        found = topic_policy(self.metadata, TOPIC_ID)
        assert found is not None
        return found

    def overwrite(self, policy: TopicPolicy) -> None:
        """Write a policy, as another process does."""
        event = TopicPolicyChanged(event_id=self.world.new_id(), policy=policy)
        assert self.metadata.publish(event).accepted
