"""A log of metadata events in memory, folded into a cache; and what a cache holds, to compare."""

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


def fold_log(log: MemoryLog, store: OrderedStore, *, max_records: int = 7) -> list[StepCounts]:
    """Fold the whole log into the store, in batches of `max_records`."""
    topic, progress = MemoryTopic(log), Progress()
    topic.assign({0: ReadPosition(offset=0)})
    applier = Applier(topic, MetadataCache(store), progress)
    counts = []
    while not progress.reached({0: log.end_offset(0)}):
        counts.append(applier.step(max_records=max_records, timeout_ms=0, partition_count=1))
    return counts


def log_of(*events: Event) -> MemoryLog:
    """A log that holds these events."""
    log = MemoryLog(ManualClock())
    for event in events:
        append(log, event)
    return log


def refusals(log: MemoryLog) -> Counter[str]:
    """How many of a log's records are refused, by reason."""
    found: Counter[str] = Counter()
    for counts in fold_log(log, MemoryStore()):
        found.update(counts.refused)
    return found


def folded(log: MemoryLog) -> MetadataCache:
    """A cache in memory that holds the log's fold."""
    store = MemoryStore()
    fold_log(log, store)
    return MetadataCache(store)


def contents(store: OrderedStore) -> dict[Table, dict[bytes, bytes]]:
    """All that was folded, but for the bounds of searches, which answer nothing."""
    with store.read(*FOLDED_TABLES) as reader:
        return {table: dict(reader.ascending(table, b"", b"\xff" * 64)) for table in FOLDED_TABLES}


def fold_contents(log: MemoryLog) -> dict[Table, dict[bytes, bytes]]:
    """What a fold of the log holds."""
    store = MemoryStore()
    fold_log(log, store)
    return contents(store)
