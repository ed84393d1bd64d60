"""A follower that tests step by hand, over a topic and a store that fail on command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import StoreBatch
from rlmm.events.event import Event
from rlmm.follow.assignment import Assignment
from rlmm.follow.follower import Follower, FollowerSettings
from rlmm.follow.progress import Progress
from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError, TieredStorageError
from tests.folding import append
from tests.log_dir_builder import ManualClock

SETTINGS = FollowerSettings(poll_timeout_ms=0, check_interval_ms=1_000, bulk_events_count=3)


class FaultyTopic(MemoryTopic):
    """A topic whose requests for its shape or for some ends, or whose reads, fail on command.

    While `is_stalled`, no records arrive; the next assignment resets `is_stalled`.
    """

    ensure_error: TieredStorageError | None = None
    poll_error: TieredStorageError | None = None
    unknown_ends: frozenset[int] = frozenset()
    is_stalled: bool = False

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self.is_stalled = False
        super().assign(positions)

    def ensure(self, *, create: bool) -> TopicIdentity:
        if self.ensure_error:
            raise self.ensure_error
        return super().ensure(create=create)

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        if self.is_stalled:
            return ()
        records = super().poll(max_records=max_records, timeout_ms=timeout_ms)
        if self.poll_error:
            raise self.poll_error  # the reader has lost what it read, as a real client does
        return records

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        if self.unknown_ends.intersection(partitions):
            raise RetriableError("no leader")
        return super().end_offsets(partitions)


class FaultyStore(MemoryStore):
    """A store that refuses writes while `disk_full`, and then all writes until it is reopened.

    If `damaged`, it is empty after it is reopened. `kept` has the topic ids of the data that was
    set aside. `expected` has the argument of each call of `set_bulk_mode`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.disk_full = False
        self.reopened_count = 0
        self.kept: list[str] = []
        self.expected: list[bool] = []
        self.damaged = False
        self._reason = ""

    def write(self, batch: StoreBatch) -> None:
        if self.disk_full:
            self._reason = "no space left"
        if self._reason:
            raise RetriableError("the cache cannot be used", reason=self._reason)
        super().write(batch)

    def set_bulk_mode(self, *, enabled: bool) -> None:
        self.expected.append(enabled)

    def failure(self) -> str:
        return "damaged" if self.damaged else self._reason

    def reopen(self, before_restart: Callable[[], None] = lambda: None) -> None:
        """Reopen even on a full disk, as RocksDB may."""
        self.reopened_count += 1
        if self.damaged:
            before_restart()
            super().set_aside("")
        self.damaged, self._reason = False, ""

    def set_aside(self, topic_id: str) -> str:
        self.kept.append(topic_id)
        return super().set_aside(topic_id)


class World:
    """A follower that a test runs step by step."""

    def __init__(self, *, partition_count: int = 1, follows_all: bool = True) -> None:
        self.follows_all = follows_all
        self.clock = ManualClock()
        self.log = MemoryLog(self.clock, partition_count=partition_count)
        self.store = FaultyStore()
        self.restart()

    def restart(self) -> None:
        """Start a new process with the old cache."""
        self.topic = FaultyTopic(self.log)
        self.cache = MetadataCache(self.store)
        self.assignment = Assignment(follows_all=self.follows_all)
        self.follower = Follower(
            self.topic, self.cache, Progress(), self.clock, SETTINGS, self.assignment
        )

    def write(self, *events: Event) -> None:
        for event in events:
            append(self.log, event)

    def step(self, count: int = 1) -> list[int]:
        return [self.follower.step() for _ in range(count)]

    @property
    def ready(self) -> bool:
        return self.follower.readiness.is_ready

    @property
    def counts(self) -> Mapping[str, int]:
        metrics = self.follower.metrics()
        return {"applied": metrics.applied_events_count, "rebuilds": metrics.rebuilds_count}
