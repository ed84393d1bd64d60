"""A manager whose jobs run when the schedule says so, and whose metadata may lag."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from uuid import UUID

from rlm.facts.local_log import LocalSegment
from rlm.source.local_disks import DiskUsage, LocalDisks
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.cycle.outage_watch import OutageLimits, OutageWatch
from rlm.tasks.deleting.topic_removal import TopicRemoval
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.layout.keys import ObjectKeys
from rsm.layout.segment_layout import SegmentLayout
from rsm.segment.epochs import Lineage
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.storage.chunk_storage import ChunkStorage
from tests.fakes.broker import MemoryBroker
from tests.fakes.effects import ProcessCrashError
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import FakeSystems, Process, ProcessSettings
from tests.fakes.queued_executor import QueuedExecutor
from tests.fakes.seams import SeamTopic
from tests.fakes.world import LAYOUTS
from tests.simulation.late_uploads import LateStorage, Upload
from tests.simulation.unanswered_writes import Requests, UnansweredTopic

_CYCLES_PER_BEAT = 10
_REMOVAL_GRACE_MS = 5_000
DISK_BYTES = 1_000


class LaggingMetadata(FreshMetadata):
    """Applies the newest records as the follower's thread might, unless `lags` is true.

    Calls that wait for the topic's end, or for their own event, still see all required records.
    """

    lags: Callable[[], bool] | None = None

    def refresh(self) -> None:
        if self.lags is None or not self.lags():
            super().refresh()


class UnexpectedError(BaseException):
    """A job raised an error that its lane would survive: a bug that must fail the test."""


class StrictLanes(Lanes):
    """Lanes that hide no bug of a job."""

    def _note_bug(self, key: Hashable) -> None:
        raise UnexpectedError(f"a job failed: {key}")


class ShuffledCopies(CopyLanes):
    """Copies in any order, because concurrent uploads end in any order."""

    shuffle: Callable[[list[LocalSegment]], None] | None = None

    def offer(
        self,
        task: PartitionTask,
        segments: Sequence[LocalSegment],
        lineage: Lineage,
        replaces: frozenset[UUID] = frozenset(),
    ) -> bool:
        ordered = list(segments)
        if self.shuffle is not None:
            self.shuffle(ordered)
        return super().offer(task, ordered, lineage, replaces)


class BrokerDisk(LocalDisks):
    """The only disk of a broker, which is soon half full."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def usage(self, topic_id_partition: TopicIdPartition) -> DiskUsage:
        return DiskUsage(name="d", total_bytes=DISK_BYTES, used_bytes=self._broker.disk_bytes())


class SimulatedProcess(Process):
    """A process whose copies and deletions run one at a time and in any order.

    The next `unanswered_left` writes to the metadata topic get no answer.
    """

    metadata_type: type[FreshMetadata] = LaggingMetadata
    copies_type = ShuffledCopies
    removal_type = TopicRemoval

    def __init__(
        self, external: FakeSystems, settings: ProcessSettings, witness: Callable[..., None]
    ) -> None:
        self.jobs = QueuedExecutor()
        self.on_the_way: list[Upload] = []
        self.requests = Requests()
        self.unanswered_left = 0
        self.deleted_topics: Callable[[], frozenset[UUID]] = frozenset
        self._beats_count = 0
        super().__init__(external, settings, witness)
        self._removal = self._make_removal()

    def step(self) -> None:
        """Run a cycle, then the removal of deleted topics, as the manager's loop does."""
        super().step()
        if not self.alive or not self.deleted_topics():
            return
        try:
            self._removal.step()
        except ProcessCrashError:
            return
        except TieredStorageError as error:
            self.problem = error

    def beat(self) -> None:
        """Register now and then: nothing here depends on registrations."""
        self._beats_count += 1
        if self._beats_count % _CYCLES_PER_BEAT == 1:
            super().beat()

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return LAYOUTS

    def make_objects(self, external: FakeSystems) -> ChunkStorage:
        return LateStorage(external.objects, self.effects, self._on_the_way)

    def make_topic(self, external: FakeSystems) -> SeamTopic:
        return UnansweredTopic(external.topic, self.effects, external.clock, self.requests)

    def make_metadata(self, external: FakeSystems) -> FreshMetadata:
        metadata = super().make_metadata(external)
        metadata.end_offset = lambda: external.topic.end_offset(0)
        return metadata

    def make_outages(self, external: FakeSystems) -> OutageWatch:
        assert isinstance(external.broker, MemoryBroker)
        return OutageWatch(
            BrokerDisk(external.broker),
            external.clock,
            limits=OutageLimits(disk_threshold_percent=50),
            metrics=self.metrics,
        )

    def _make_removal(self) -> TopicRemoval:
        return self.removal_type(
            self.ports,
            find_deleted=self._find_deleted,
            expirer=self.make_expirer(),
            lanes=self.make_lanes("removal"),
            stopping=self.stopping,
            incarnation=self.incarnation,
            drop_originals=lambda *_: None,
            metrics=self.metrics,
            grace_ms=_REMOVAL_GRACE_MS,
            orphan_grace_ms=self.settings.limits.orphan_grace_ms,
        )

    def _on_the_way(self, name: str, content: bytes) -> None:
        key = ObjectKeys().parse(name)
        record = None if key is None else self.ports.metadata.segment(key.segment_id)
        if record is not None:
            upload = Upload(name=name, content=content, deadline_ms=record.copy_deadline_ms)
            self.on_the_way.append(upload)

    def _find_deleted(self, topics: Mapping[UUID, str]) -> frozenset[UUID]:
        return self.effects.ask("topics", lambda: self.deleted_topics() & topics.keys())

    def make_lanes(self, name: str) -> Lanes:
        return StrictLanes(self.jobs, name)
