"""One run of the manager, composed of `rlm`'s parts over a world's twins, without threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from uuid import UUID

from prometheus_client import CollectorRegistry

from rlm.broker.dead_letters.dead_letter_topic import DeadLetterTopic
from rlm.broker.groups.share_groups import ShareGroups
from rlm.broker.spi import Broker
from rlm.metrics.metrics import Metrics
from rlm.policy.view import AttemptFailure, PolicyLimits
from rlm.source.log_source import LogSource
from rlm.status.document import PartitionReport
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import AttemptContext, AttemptKind
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.copying.merge_lane import MergeLanes
from rlm.tasks.copying.repairs import Repairs
from rlm.tasks.copying.stream_lane import StreamLanes
from rlm.tasks.cycle.leader import LeaderCycle
from rlm.tasks.cycle.outage_watch import OutageWatch
from rlm.tasks.cycle.partition_views import CycleOutlook, PartitionViews
from rlm.tasks.cycle.stream_watch import StreamWatch
from rlm.tasks.deleting.expirer import Expirer
from rlm.tasks.deleting.expiry_lane import ExpiryLanes
from rlm.tasks.deleting.streamed_deletion import StreamedDeletion
from rlm.tasks.deleting.trimmer import Trimmer
from rlm.tasks.integrity.anomaly_check import AnomalyCheck
from rlm.tasks.integrity.damage_proof import DamageProof
from rlm.tasks.leadership.heartbeat import Heartbeat, ProcessDescription, ProcessState
from rlm.tasks.leadership.leadership import Leadership
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import OrderedStore
from rlmm.events.registration import ProcessReadiness, ProcessRole
from rlmm.manager import ManagerSettings
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.storage.chunk_storage import ChunkStorage
from tests.fakes.effects import Act, Effects, ProcessCrashError
from tests.fakes.executor import SynchronousExecutor
from tests.fakes.metadata import FreshMetadata
from tests.fakes.seams import SeamBroker, SeamChunkStorage, SeamDeadLetters, SeamTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The settings of a configuration; trims and deletions as fast as possible."""

    limits: PolicyLimits = field(default_factory=lambda: PolicyLimits(local_trim_min_age_ms=0))
    attempt_timeout_ms: int = 600_000
    max_delete_attempts: int = 3
    first_pause_ms: int = 1_000
    plan_max_age_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSystems:
    """The systems that outlive a process: broker and disk, store, topics, its cache, the clock.

    `recorder` gets every act of the process, from its start on.
    """

    broker: Broker
    source: LogSource
    objects: ChunkStorage
    topic: MemoryLog
    dead_letters: DeadLetterTopic
    share_groups: ShareGroups
    cache: OrderedStore
    clock: Clock
    new_id: Callable[[], UUID]
    recorder: Callable[[Process, Act], None] | None = None


class Process:
    """A manager next to one broker.

    A variant without a guard overrides one of the `make_` methods, or names another type of
    metadata or lanes.

    `reports` are those of the last cycle, `problem` is what ended it early. `untierable` are topics
    that the check of the broker's settings would have found.
    """

    metadata_type: type[FreshMetadata] = FreshMetadata
    copies_type: type[CopyLanes] = CopyLanes
    streams_type: type[StreamLanes] = StreamLanes
    expiries_type: type[ExpiryLanes] = ExpiryLanes
    views_type: type[PartitionViews] = PartitionViews

    def __init__(
        self, external: FakeSystems, settings: ProcessSettings, witness: Callable[..., None]
    ) -> None:
        self.settings = settings
        self.incarnation = self.make_incarnation(external)
        self.effects = Effects(lambda name, subject: witness(self, name, subject))
        if external.recorder is not None:
            self.effects.recorder = partial(external.recorder, self)
        self.metrics = Metrics(CollectorRegistry())
        self.stopping = Event()
        self.reports: tuple[PartitionReport, ...] = ()
        self.problem: TieredStorageError | None = None
        self.untierable: dict[UUID, str] = {}
        self.is_store_reachable = True
        self.ports = self._make_ports(external)
        self.leadership = Leadership(self.ports, incarnation=self.incarnation, alone=lambda: False)
        self.copies = self.make_copies()
        self.anomalies = self.make_anomaly_check()
        self.repairs = self._make_repairs()
        self.streams = self.make_streams()
        self.merges = self._make_merges()
        self.deletions = StreamedDeletion(self.ports.metadata, self.leadership)
        self.trimmer = self.make_trimmer()
        self.outages = self.make_outages(external)
        self.cycle = self.make_cycle()
        self.watch = StreamWatch(
            self.ports, streamed=self.cycle.streamed, copies=self.copies, streams=self.streams
        )
        self._heartbeat = self._make_heartbeat()

    @property
    def alive(self) -> bool:
        return not self.effects.crashed

    def step(self) -> None:
        """Run one cycle, as its loop would; a crash ends the process and nothing else."""
        if not self.alive:
            return
        self.problem = None
        try:
            self.beat()
            outlook = CycleOutlook(
                untierable=self.untierable, is_store_reachable=self.is_store_reachable
            )
            self.reports = self.cycle.step(outlook)
            self.check_anomalies()
        except ProcessCrashError:
            self.reports = ()
        except TieredStorageError as error:
            self.problem = error

    def copy_failure(self, tip: TopicIdPartition) -> AttemptFailure | None:
        """Return why the last copies of a led partition failed."""
        tasks = (task for task in self.leadership.tasks() if task.topic_id_partition == tip)
        histories = (each for task in tasks for each in (task.copying, task.stream_history))
        return next((each.failure for each in histories if each.failure is not None), None)

    def check_anomalies(self) -> None:
        """Check damaged objects, as another loop would."""
        self.anomalies.step()

    def beat(self) -> None:
        """Register, as its loop would before each cycle."""
        self._heartbeat.step(ProcessState(readiness=ProcessReadiness.READY))

    def make_incarnation(self, external: FakeSystems) -> UUID:
        return external.new_id()

    def make_metadata(self, external: FakeSystems) -> FreshMetadata:
        topic = self.make_topic(external)
        settings = ManagerSettings(tombstone_grace_ms=self.settings.limits.orphan_grace_ms)
        cache = MetadataCache(external.cache)
        metadata = self.metadata_type(topic, cache, external.clock, settings)
        metadata.wait_ready(60_000)
        return metadata

    def make_topic(self, external: FakeSystems) -> SeamTopic:
        return SeamTopic(MemoryTopic(external.topic), self.effects, external.clock)

    def make_lanes(self, name: str) -> Lanes:
        return Lanes(SynchronousExecutor(), name)

    def make_source(self, external: FakeSystems) -> LogSource:
        return external.source

    def make_objects(self, external: FakeSystems) -> ChunkStorage:
        return SeamChunkStorage(external.objects, self.effects)

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (RawLayout(),)

    def make_anomaly_check(self) -> AnomalyCheck:
        return AnomalyCheck(self.ports, led=self.leadership.led, stopping=self.stopping)

    def make_copies(self) -> CopyLanes:
        return self._copy_lanes("copy", AttemptKind.COPY)

    def _make_repairs(self) -> Repairs:
        return Repairs(self._copy_lanes("repair", AttemptKind.REPAIR))

    def _copy_lanes(self, name: str, kind: AttemptKind) -> CopyLanes:
        return self.copies_type(self.ports, self.attempts(self.make_lanes(name)), kind=kind)

    def make_streams(self) -> StreamLanes:
        return self.streams_type(self.ports, self.attempts(self.make_lanes("stream")))

    def _make_merges(self) -> MergeLanes:
        context = self.attempts(self.make_lanes("merge"))
        return MergeLanes(self.ports, context, executor=SynchronousExecutor())

    def attempts(self, lanes: Lanes) -> AttemptContext:
        return AttemptContext(
            lanes=lanes,
            metrics=self.metrics,
            stopping=self.stopping,
            attempt_timeout_ms=self.settings.attempt_timeout_ms,
            first_pause_ms=self.settings.first_pause_ms,
        )

    def make_outages(self, external: FakeSystems) -> OutageWatch | None:
        """Return None: no disk is checked."""
        return None

    def make_trimmer(self) -> Trimmer:
        return Trimmer(self.ports, plan_max_age_ms=self.settings.plan_max_age_ms)

    def make_cycle(self) -> LeaderCycle:
        return LeaderCycle(
            self.ports,
            leadership=self.leadership,
            views=self.make_views(),
            copies=self.copies,
            repairs=self.repairs,
            streams=self.streams,
            merges=self.merges,
            expiries=self._make_expiries(),
            trimmer=self.trimmer,
            outages=self.outages,
        )

    def make_views(self) -> PartitionViews:
        return self.views_type(
            self.ports,
            leadership=self.leadership,
            lanes=(self.copies, self.repairs, self.streams, self.merges),
            limits=self.settings.limits,
        )

    def make_expirer(self) -> Expirer:
        return Expirer(
            self.ports,
            metrics=self.metrics,
            max_attempts=self.settings.max_delete_attempts,
            first_pause_ms=self.settings.first_pause_ms,
        )

    def _make_expiries(self) -> ExpiryLanes:
        return self.expiries_type(
            self.ports,
            lanes=self.make_lanes("expiry"),
            expirer=self.make_expirer(),
            stopping=self.stopping,
            proof=self.make_proof(),
        )

    def make_proof(self) -> DamageProof:
        return DamageProof(self.ports, self.stopping)

    def _make_ports(self, external: FakeSystems) -> Ports:
        return Ports(
            broker=SeamBroker(external.broker, self.effects),
            source=self.make_source(external),
            storage=SegmentStorageManager(
                storage=self.make_objects(external),
                keys=ObjectKeys(),
                layouts=self.make_layouts(),
            ),
            metadata=self.make_metadata(external),
            dead_letters=SeamDeadLetters(external.dead_letters, self.effects),
            share_groups=external.share_groups,
            clock=external.clock,
            new_id=external.new_id,
        )

    def _make_heartbeat(self) -> Heartbeat:
        card = ProcessDescription(
            process_id=self.incarnation,
            role=ProcessRole.MANAGER,
            broker_id=self.ports.broker.node_id,
            heartbeat_interval_ms=30_000,
            version="0",
        )
        return Heartbeat(self.ports.metadata, card, self.ports.new_id)
