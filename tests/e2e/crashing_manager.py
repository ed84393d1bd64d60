"""A manager that kills itself with SIGKILL right after a given external effect.

Run with `--config F --journal J [--die-at LABEL [--once FILE]]`. An effect is a record written to
the metadata topic, an object written or deleted, or a request to delete records. Its label is its
kind and how often that kind has occurred, such as `COPY_SEGMENT_STARTED#2`. `half .log#1` is in the
middle of an object's content. The manager appends each label to the journal. With `--once`, it
counts effects only after that file exists.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from rlm.broker.partition_results import PartitionResults
from rlm.broker.spi import Broker, RecordDeletion
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.worker.external import ExternalSystems
from rlmm import codec
from rlmm.events.segment import SegmentEvent
from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.topic.event_topic import EventTopic, PublishedPosition
from rsm.layout.keys import ObjectKeys, StreamedKey
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import ContentSource
from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper
from tests.e2e.composition import run_changed_manager


class Effects:
    """Counts and logs effects, and kills the process at the chosen one. Thread-safe."""

    def __init__(self, journal: Path, die_at: str | None, once: Path | None) -> None:
        self._journal = journal
        self._die_at = die_at
        self._once = once
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def happened(self, what: str) -> None:
        if self._once is not None and not self._once.exists():
            return
        with self._lock:
            self._counts[what] += 1
            label = f"{what}#{self._counts[what]}"
            with self._journal.open("a") as journal:
                journal.write(f"{label}\n")
            if label == self._die_at:
                os.kill(os.getpid(), signal.SIGKILL)


class CrashingTopic(EventTopic):
    def __init__(self, inner: EventTopic, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    def ensure(self, *, create: bool) -> TopicIdentity:
        return self._inner.ensure(create=create)

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        published = self._inner.publish(partition, key, value)
        self._effects.happened(_record_name(key, value))
        return published

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._inner.assign(positions)

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        return self._inner.poll(max_records=max_records, timeout_ms=timeout_ms)

    def positions(self) -> Mapping[int, int]:
        return self._inner.positions()

    def answered(self) -> Collection[int]:
        return self._inner.answered()

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return self._inner.end_offsets(partitions)

    def close(self) -> None:
        self._inner.close()


class CrashingStorage(ChunkStorageWrapper):
    def __init__(self, inner: ChunkStorage, effects: Effects) -> None:
        super().__init__(inner)
        self._effects = effects

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        suffix = _suffix(name)
        halved = _HalvedSource(source, self._effects, f"half {suffix}")
        crc32c = super().create_with_content(name, halved, attributes=attributes)
        self._effects.happened(f"write {suffix}")
        return crc32c

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        return tuple(self._delete_one(name) for name in names)

    def _delete_one(self, name: str) -> DeleteOutcome:
        (outcome,) = super().delete_many((name,))
        self._effects.happened(f"delete {_suffix(name)}")
        return outcome


def _suffix(name: str) -> str:
    """Return the suffix of an object's name; for streamed segments, which part it is."""
    key = ObjectKeys().parse(name)
    return key.part.name.lower() if isinstance(key, StreamedKey) else Path(name).suffix


class _HalvedSource:
    """A source that yields its first piece in two halves, with an effect between them."""

    def __init__(self, inner: ContentSource, effects: Effects, what: str) -> None:
        self._inner = inner
        self._effects = effects
        self._what = what

    @property
    def length_bytes(self) -> int | None:
        return self._inner.length_bytes

    def chunks(self) -> Iterator[memoryview]:
        is_first = True
        for chunk in self._inner.chunks():
            if is_first:
                half = len(chunk) // 2
                yield chunk[:half]
                self._effects.happened(self._what)
                yield chunk[half:]
            else:
                yield chunk
            is_first = False


class CrashingBroker(Broker):
    def __init__(self, inner: Broker, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    @property
    def node_id(self) -> int:
        return self._inner.node_id

    def leadership(self, topics: Iterable[str] | None = None) -> Mapping[TopicIdPartition, int]:
        return self._inner.leadership(topics)

    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> PartitionResults[PartitionOffsets]:
        return self._inner.offsets(leader_epochs)

    def first_offsets_since(
        self, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
    ) -> PartitionResults[int | None]:
        return self._inner.first_offsets_since(leader_epochs, since_ms)

    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        results = self._inner.delete_records(deletions)
        self._effects.happened("DeleteRecords")
        return results

    def close(self) -> None:
        self._inner.close()


def _record_name(key: bytes, value: bytes | None) -> str:
    if value is None:
        return "tombstone"
    event = codec.decode(key, value)
    if isinstance(event, SegmentEvent):
        return event.metadata.state.name
    return type(event).__name__


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--die-at")
    parser.add_argument("--once", type=Path)
    options = parser.parse_args()
    effects = Effects(options.journal, options.die_at, options.once)

    def change(external: ExternalSystems) -> ExternalSystems:
        return replace(
            external,
            broker=CrashingBroker(external.broker, effects),
            storage=CrashingStorage(external.storage, effects),
            metadata_topic=CrashingTopic(external.metadata_topic, effects),
        )

    run_changed_manager(options.config, change)


if __name__ == "__main__":
    _main()
