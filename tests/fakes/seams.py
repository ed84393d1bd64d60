"""Wrappers around all external systems of a process, so that each act passes its `Effects`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rlm.broker.dead_letters.dead_letter_topic import DeadLetterTopic
from rlm.broker.partition_results import PartitionResults
from rlm.broker.spi import Broker, RecordDeletion
from rlm.facts.partition_offsets import PartitionOffsets
from rlmm import codec
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.events.segment import SegmentEvent
from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.topic.event_topic import EventTopic, PublishedPosition
from rsm.segment.clock import Clock
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage
from tests.fakes.broker import MemoryBroker
from tests.fakes.effects import Effects


class SeamBroker(Broker):
    """Asks a broker. Acts: "delete_records", and questions named after the method.

    A deletion that the broker does not refuse is reported as "cut", a moment before it happens.
    """

    def __init__(self, inner: Broker, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    @property
    def node_id(self) -> int:
        return self._inner.node_id

    def leadership(self, topics: Iterable[str] | None = None) -> Mapping[TopicIdPartition, int]:
        return self._effects.ask("leadership", lambda: self._inner.leadership(topics))

    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> PartitionResults[PartitionOffsets]:
        return self._effects.ask("offsets", lambda: self._inner.offsets(leader_epochs))

    def first_offsets_since(
        self, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
    ) -> PartitionResults[int | None]:
        return self._effects.ask(
            "first_offsets_since", lambda: self._inner.first_offsets_since(leader_epochs, since_ms)
        )

    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        def delete() -> PartitionResults[int]:
            if isinstance(self._inner, MemoryBroker):
                self._inner.before_cut = lambda tip, cut: self._effects.report("cut", {tip: cut})
            return self._inner.delete_records(deletions)

        return self._effects.perform("delete_records", None, delete)

    def close(self) -> None:
        self._inner.close()


class SeamTopic(EventTopic):
    """Writes and reads the metadata topic. Acts are named after the event, "publish <event>".

    An empty poll lets time pass, as waiting for records does.
    """

    def __init__(self, inner: EventTopic, effects: Effects, clock: Clock) -> None:
        self._inner = inner
        self._effects = effects
        self._clock = clock

    def ensure(self, *, create: bool) -> TopicIdentity:
        return self._effects.ask("ensure", lambda: self._inner.ensure(create=create))

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        event = None if value is None else codec.decode(key, value)
        name = "tombstone"
        if isinstance(event, SegmentEvent):
            name = event.metadata.state.name
        elif event is not None:
            name = type(event).__name__
        return self._effects.perform(
            f"publish {name}", event, lambda: self._inner.publish(partition, key, value)
        )

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._inner.assign(positions)

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        found = self._effects.ask(
            "poll", lambda: self._inner.poll(max_records=max_records, timeout_ms=0)
        )
        if not found:
            self._clock.sleep_ms(timeout_ms)
        return found

    def positions(self) -> Mapping[int, int]:
        return self._inner.positions()

    def answered(self) -> Collection[int]:
        return self._inner.answered()

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return self._effects.ask("end_offsets", lambda: self._inner.end_offsets(partitions))

    def close(self) -> None:
        self._inner.close()


class SeamDeadLetters(DeadLetterTopic):
    """Writes dead letters. Act: "dead_letter"."""

    def __init__(self, inner: DeadLetterTopic, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    def publish(self, dead_letter: DeadLetter) -> None:
        self._effects.perform("dead_letter", dead_letter, lambda: self._inner.publish(dead_letter))

    def close(self) -> None:
        self._inner.close()


class SeamChunkStorage(ChunkStorage):
    """Writes and deletes objects. Acts: "write .log", "delete .meta" and so on, by their suffix."""

    def __init__(self, inner: ChunkStorage, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        def write() -> int:
            crc32c = self._inner.create_with_content(name, source, attributes=attributes)
            self._effects.report("written", name)  # an attempt may have ended before its first byte
            return crc32c

        return self._effects.perform(f"write {_suffix(name)}", name, write)

    def discard_uploads(self, name: str) -> None:
        self._inner.discard_uploads(name)

    def create(self, name: str) -> None:
        self._effects.perform(f"write {_suffix(name)}", name, lambda: self._inner.create(name))

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        self._effects.perform(
            f"write {_suffix(name)}", name, lambda: self._inner.append(name, offset_bytes, data)
        )

    def truncate(self, name: str, length_bytes: int) -> None:
        self._effects.perform(
            f"write {_suffix(name)}", name, lambda: self._inner.truncate(name, length_bytes)
        )

    def concat(self, target: str, sources: Sequence[str]) -> None:
        self._effects.perform(
            f"write {_suffix(target)}", target, lambda: self._inner.concat(target, sources)
        )

    def exists(self, name: str) -> bool:
        return self._effects.ask("exists", lambda: self._inner.exists(name))

    def info(self, name: str) -> ChunkInfo:
        return self._effects.ask("info", lambda: self._inner.info(name))

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        return self._effects.ask("read", lambda: self._inner.read_range(name, positions))

    def delete(self, name: str) -> None:
        self._effects.perform(f"delete {_suffix(name)}", name, lambda: self._inner.delete(name))

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        return self._inner.list(prefix, after=after)

    def check_access(self) -> None:
        self._inner.check_access()

    def close(self) -> None:
        self._inner.close()


def _suffix(name: str) -> str:
    """Return the end of a name: `.log`, or `-index` if a ledger's object has no suffix."""
    last = name.rpartition("/")[2]
    mark = "." if "." in last else "-"
    return last[last.rindex(mark) :]
