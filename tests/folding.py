"""A log of metadata events in memory, folded into a cache; compares the contents of caches."""

from __future__ import annotations

from collections import Counter

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import OrderedStore, Table
from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.follow.applier import Applier, StepCounts
from rlmm.follow.progress import Progress
from rlmm.positions import ReadPosition
from rlmm.topic.event_topic import PublishedPosition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from tests.log_dir_builder import ManualClock

_NOT_COMPARED = (Table.CHECKPOINT, Table.BOUNDS)
FOLDED_TABLES = [table for table in Table if table not in _NOT_COMPARED]


def append(log: MemoryLog, event: Event) -> PublishedPosition:
    """Write an event to the log's only partition."""
    record = encode(event)
    return log.append(0, record.key, record.value)


class LiveFold:
    """The fold of a log that grows: each record is folded once."""

    def __init__(self, log: MemoryLog, store: OrderedStore) -> None:
        self._log = log
        self._cache, self._progress = MetadataCache(store), Progress()
        topic = MemoryTopic(log)
        topic.assign({0: ReadPosition(offset=0)})
        self._applier = Applier(topic, self._cache, self._progress)

    def catch_up(self, *, max_records: int = 7) -> list[StepCounts]:
        """Fold the new records of the log, in batches of `max_records`."""
        counts = []
        while not self._progress.has_reached({0: self._log.end_offset(0)}):
            step = self._applier.step(max_records=max_records, timeout_ms=0, partition_count=1)
            counts.append(step)
        return counts

    def caught_up(self) -> MetadataCache:
        """Fold the new records of the log; return the cache."""
        self.catch_up()
        return self._cache


def fold_log(log: MemoryLog, store: OrderedStore, *, max_records: int = 7) -> list[StepCounts]:
    """Fold the whole log into the store, in batches of `max_records`."""
    return LiveFold(log, store).catch_up(max_records=max_records)


def log_of(*events: Event) -> MemoryLog:
    """Return a log that has these events."""
    log = MemoryLog(ManualClock())
    for event in events:
        append(log, event)
    return log


def refusals(log: MemoryLog) -> Counter[str]:
    """Return how many of a log's records the fold refuses, by reason."""
    found: Counter[str] = Counter()
    for counts in fold_log(log, MemoryStore()):
        found.update(counts.refused)
    return found


def folded(log: MemoryLog) -> MetadataCache:
    """Return a cache in memory that has the log's fold."""
    store = MemoryStore()
    fold_log(log, store)
    return MetadataCache(store)


def contents(store: OrderedStore) -> dict[Table, dict[bytes, bytes]]:
    """Return all folded data except the search bounds, which no caller sees."""
    with store.read(*FOLDED_TABLES) as reader:
        return {table: dict(reader.ascending(table, b"", b"\xff" * 64)) for table in FOLDED_TABLES}


def fold_contents(log: MemoryLog) -> dict[Table, dict[bytes, bytes]]:
    """Return the content of a fold of the log."""
    store = MemoryStore()
    fold_log(log, store)
    return contents(store)
