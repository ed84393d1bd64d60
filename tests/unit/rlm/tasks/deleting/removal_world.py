"""A cluster whose topics may be deleted, and processes that remove what is stored of them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from uuid import UUID

from rlm.policy.view import PolicyLimits
from rlm.source.log_source import LogSource
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.deleting.topic_removal import TopicRemoval
from rlm.topics.originals_mirror import StoredOriginals
from rsm.layout.originals import OriginalsKeys
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from tests.fakes.effects import ProcessCrashError
from tests.fakes.executor import SynchronousExecutor
from tests.fakes.log_source import MemoryLogSource
from tests.fakes.process import FakeSystems, Process, ProcessSettings
from tests.fakes.world import TOPIC_ID, World

MINUTE_MS = 60_000
GRACE_MS = 5 * MINUTE_MS
ORPHAN_GRACE_MS = 60 * MINUTE_MS
SETTINGS = ProcessSettings(
    limits=PolicyLimits(local_trim_min_age_ms=0, orphan_grace_ms=ORPHAN_GRACE_MS)
)


class DeletingWorld(World):
    """Topics may be deleted; their replicas stay, but nobody leads or lists them."""

    def __init__(self, *, partitions: int, brokers: int, executor: Executor) -> None:
        self.gone: set[UUID] = set()
        self.listed_still = False
        self.executor = executor
        super().__init__(
            partitions=partitions,
            brokers=brokers,
            settings=SETTINGS,
            process_type=partial(RemovingProcess, self),  # type: ignore[arg-type]  # makes one
        )

    def delete_topic(self) -> None:
        self.gone.add(TOPIC_ID)
        for host in self.hosts.values():
            for replica in host.replicas.values():
                replica.leader_epoch = None

    def minutes(self, count: int) -> None:
        for _ in range(2 * count):
            self.cycle()


class _Source(MemoryLogSource):
    def __init__(self, world: DeletingWorld, external: FakeSystems) -> None:
        super().__init__(external.source._replicas)  # type: ignore[attr-defined]  # a twin's
        self._world = world

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        gone = set() if self._world.listed_still else self._world.gone
        return tuple(tip for tip in super().partitions() if tip.topic_id not in gone)


class RemovingProcess(Process):
    def __init__(self, world: DeletingWorld, external: FakeSystems, *rest: object) -> None:
        self._world = world
        super().__init__(external, *rest)  # type: ignore[arg-type]  # as a Process is made
        self.removal = TopicRemoval(
            self.ports,
            find_deleted=self._find_deleted,
            expirer=self.make_expirer(),
            lanes=Lanes(world.executor, "removal"),
            stopping=self.stopping,
            incarnation=self.incarnation,
            drop_originals=StoredOriginals(external.objects, OriginalsKeys()).drop,
            metrics=self.metrics,
            grace_ms=GRACE_MS,
            orphan_grace_ms=ORPHAN_GRACE_MS,
        )

    def make_source(self, external: FakeSystems) -> LogSource:
        return _Source(self._world, external)

    def step(self) -> None:
        super().step()
        if self.alive:
            try:
                self.removal.step()
            except ProcessCrashError:
                return
            except TieredStorageError as error:
                self.problem = error

    def _find_deleted(self, topics: Mapping[UUID, str]) -> frozenset[UUID]:
        return self.effects.ask("topics", lambda: frozenset(self._world.gone & topics.keys()))


def stored_world(
    *, partitions: int = 1, brokers: int = 1, executor: Executor | None = None
) -> tuple[DeletingWorld, RemovingProcess]:
    """Return a world in which three segments of each partition are stored, before the deletion."""
    world = DeletingWorld(
        partitions=partitions, brokers=brokers, executor=executor or SynchronousExecutor()
    )
    for tip in world.tips:
        world.segments(3, tip=tip)
    process = world.start()
    assert isinstance(process, RemovingProcess)
    world.settle()
    process.effects.performed.clear()
    return world, process
