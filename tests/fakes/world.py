"""A small cluster with managers next to its brokers: everything in memory, one thread, one clock.

Owns the cluster's truth (who leads, what was written) and the running processes. A test changes it,
runs cycles, and asks `tests.fakes.invariants` whether all invariants hold. The same calls in the
same order give the same world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.log_start import LogStartRequested
from rlmm.events.offload_segment import offload_segments
from rlmm.events.policy import PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from rsm.storage.memory import MemoryChunkStorage
from tests.fakes.audit import Audit
from tests.fakes.broker import MemoryBroker
from tests.fakes.clock import FakeClock
from tests.fakes.dead_letters import MemoryDeadLetters
from tests.fakes.effects import Act
from tests.fakes.ids import CountedIds
from tests.fakes.log_source import MemoryLogSource
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import FakeSystems, Process, ProcessSettings
from tests.fakes.replica import Replica
from tests.fakes.share_groups import MemoryShareGroups
from tests.log_dir_builder import producer_snapshot
from tests.segment_builder import build_batch, record

TOPIC_ID = UUID(int=0x7091C)
TIP = TopicIdPartition(topic_id=TOPIC_ID, topic="orders", partition=0)
INTERVAL_MS = 30_000
SEGMENT_RECORDS = 10
LAYOUTS: tuple[SegmentLayout, ...] = (
    RawLayout(),
    BlockV2Layout(block_bytes=512),
    ChunkedLayout(max_chunk_bytes=1 << 20),
)
"""The layouts that a world can read; topics without a layout have the first one."""

KEEP_REMOTE = TopicPolicy(
    topic="orders",
    topic_id=TOPIC_ID,
    state=PolicyState.ACTIVE,
    retention_ms=-1,
    retention_bytes=-1,
    local_retention_ms=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A read lease as it was taken; its record is at `at_offset` of the metadata topic."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange
    at_offset: int
    expires_ms: int


@dataclass(kw_only=True)
class Host:
    """A broker with its disk, and what its managers keep next to it."""

    node_id: int
    replicas: dict[TopicIdPartition, Replica]
    broker: MemoryBroker = field(init=False)
    cache: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.broker = MemoryBroker(self.node_id, self.replicas)


class World:
    """Brokers 1..n, each with a replica of every partition of one topic; broker 1 leads all.

    `has_late_writers`: objects may arrive after their attempt was deleted. `copies_in_order`: no
    process copies a segment before an older one. `allowed_before` is the highest log start that was
    ever allowed, even if it is not allowed any more. `taken` is what somebody else has deleted at
    the brokers, stored or not. `damaged_objects` are those that somebody has ever damaged or taken
    from the store, `damaged_offsets` are the offsets of their segments. `unwanted` are the streamed
    segments whose deletion an operator has requested. `recorder` gets every act of the processes
    that start from then on.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        partitions: int = 1,
        policy: TopicPolicy | None = KEEP_REMOTE,
        settings: ProcessSettings | None = None,
        process_type: type[Process] = Process,
        storage_type: type[MemoryChunkStorage] = MemoryChunkStorage,
    ) -> None:
        self.clock = FakeClock()
        self.new_id = CountedIds()
        self.topic = MemoryLog(self.clock)
        self.objects = storage_type(wall_ms=self.clock.wall_ms)
        self.storage = SegmentStorageManager(
            storage=self.objects, keys=ObjectKeys(), layouts=LAYOUTS
        )
        self.dead_letters = MemoryDeadLetters()
        self.share_groups = MemoryShareGroups()
        self.settings = settings or ProcessSettings()
        self.process_type = process_type
        self.tips = tuple(replace(TIP, partition=number) for number in range(partitions))
        self.hosts = {node_id: self._make_host(node_id) for node_id in range(1, brokers + 1)}
        self.cut_off: set[int] = set()
        self.started_at_offset: dict[TopicIdPartition, int] = {}
        self.deleted_below: dict[TopicIdPartition, int] = {}
        self.taken: dict[TopicIdPartition, list[OffsetRange]] = {}
        self.leases: list[Lease] = []
        self.damaged_objects: set[str] = set()
        self.damaged_offsets: dict[TopicIdPartition, list[OffsetRange]] = {}
        self.unwanted: set[UUID] = set()
        self.has_late_writers = False
        self.copies_in_order = True
        self.allowed_before: dict[TopicIdPartition, int] = {}
        self.processes: list[Process] = []
        self.recorder: Callable[[Process, Act], None] | None = None
        self.metadata = FreshMetadata(
            MemoryTopic(self.topic), MetadataCache(MemoryStore()), self.clock
        )
        self.metadata.wait_ready(60_000)
        self.audit = Audit(self)
        for tip in self.tips:
            self.elect(1, tip=tip)
        if policy is not None:
            self.set_policy(policy)

    # ------------------------------------------------------------------------ the cluster

    def leader(self, tip: TopicIdPartition = TIP) -> Replica:
        """Return the replica that leads; of two that believe so, the one with the newer epoch."""
        leading = [h.replicas[tip] for h in self.hosts.values()]
        return max(leading, key=lambda r: -1 if r.leader_epoch is None else r.leader_epoch)

    def request_log_start(self, offset: int, *, tip: TopicIdPartition = TIP) -> None:
        """Request a log start, as a gateway does after the broker accepted a client's deletion."""
        self.deleted_below[tip] = max(offset, self.deleted_below.get(tip, 0))
        leader_epoch = self.leader(tip).leader_epoch
        event = LogStartRequested(
            event_id=self.new_id(),
            topic_id_partition=tip,
            offset=offset,
            leader_epoch=-1 if leader_epoch is None else leader_epoch,
        )
        assert self.metadata.publish(event).accepted

    def elect(self, node_id: int, *, tip: TopicIdPartition = TIP) -> None:
        """Make a broker the leader in the next epoch.

        Brokers that are cut off do not learn of it.
        """
        epochs = [h.replicas[tip].leader_epoch for h in self.hosts.values()]
        newest = [e.epoch for h in self.hosts.values() for e in h.replicas[tip].epochs]
        known = [epoch for epoch in (*epochs, *newest) if epoch is not None]
        self.hosts[node_id].replicas[tip].lead(max(known, default=-1) + 1)
        self._replicate(tip)

    def produce(
        self, count: int = SEGMENT_RECORDS, *, tip: TopicIdPartition = TIP, commit: bool = True
    ) -> None:
        """Write records stamped with the current time, in batches of five."""
        leader = self.leader(tip)
        left = count
        while left > 0:
            leader.append(self._batch(leader, min(5, left)))
            left -= 5
        if commit:
            self.commit(tip=tip)

    def commit(self, offset: int | None = None, *, tip: TopicIdPartition = TIP) -> None:
        """Move the high watermark up to an offset, else to the log's end."""
        leader = self.leader(tip)
        leader.high_watermark = leader.end_offset if offset is None else offset
        self._replicate(tip)

    def roll(self, *, tip: TopicIdPartition = TIP) -> None:
        """Roll the active segment everywhere."""
        self.leader(tip).roll()
        self._replicate(tip)

    def segments(self, count: int, *, tip: TopicIdPartition = TIP) -> None:
        """Write `count` segments and roll each; the active one is then empty."""
        for _ in range(count):
            self.produce(tip=tip)
            self.roll(tip=tip)

    # ------------------------------------------------------------------------ the processes

    def start(self, node_id: int = 1, process_type: type[Process] | None = None) -> Process:
        """Start a manager next to a broker, whether or not one runs there already."""
        external = self.systems_of(self.hosts[node_id])
        process = (process_type or self.process_type)(external, self.settings, self.audit.witness)
        self.processes.append(process)
        return process

    def systems_of(self, host: Host) -> FakeSystems:
        """Return the external systems of the next manager that starts next to a broker."""
        return FakeSystems(
            broker=host.broker,
            source=MemoryLogSource(host.replicas),
            objects=self.objects,
            topic=self.topic,
            dead_letters=self.dead_letters,
            share_groups=self.share_groups,
            cache=host.cache if not self.running(host.node_id) else MemoryStore(),
            clock=self.clock,
            new_id=self.new_id,
            recorder=self.recorder,
        )

    def running(self, node_id: int) -> tuple[Process, ...]:
        """Return the living managers next to a broker."""
        return tuple(p for p in self.processes if p.alive and p.ports.broker.node_id == node_id)

    def restart(self, node_id: int = 1) -> Process:
        """End all managers next to a broker without warning, and start one."""
        for process in self.running(node_id):
            process.effects.crashed = True
        return self.start(node_id)

    def cycle(self) -> None:
        """Let an interval pass: each manager runs a cycle, each broker checks its retention."""
        self.clock.advance(INTERVAL_MS)
        for process in tuple(self.processes):
            process.step()
        for replica in self._replicas():
            replica.delete_old_files()

    def settle(self, *, quiet_cycles: int = 3, max_cycles: int = 40) -> None:
        """Run cycles until `quiet_cycles` in a row change nothing, else AssertionError."""
        unchanged_count = 0
        for _ in range(max_cycles):
            before = self.fingerprint()
            self.cycle()
            unchanged_count = unchanged_count + 1 if self.fingerprint() == before else 0
            if unchanged_count == quiet_cycles:
                return
        raise AssertionError(f"still changing after {max_cycles} cycles")

    def delete_streamed(self, process: Process, *, tip: TopicIdPartition = TIP) -> bool:
        """Request the deletion of a partition's streamed segments, as an operator's command does.

        Returns whether the process leads the partition.
        """
        accounts = offload_segments(process.ports.metadata, tip)
        is_led = process.deletions.request(tip.topic, tip.partition)
        if is_led:
            self.unwanted.update(segment for each in accounts for segment in each.segment_ids)
        return is_led

    # ------------------------------------------------------------------------ what is known

    def set_policy(self, policy: TopicPolicy) -> None:
        """Write the topic's policy, as a user's command does."""
        event = TopicPolicyChanged(event_id=self.new_id(), policy=policy)
        assert self.metadata.publish(event).accepted

    def defined_tips(self) -> tuple[TopicIdPartition, ...]:
        """Return the partitions whose data is defined, so that the invariants hold for it."""
        return self.tips

    def state(self, tip: TopicIdPartition = TIP) -> PartitionState:
        return self.metadata.partition_state(tip)

    def records(self, *states: SegmentState, tip: TopicIdPartition = TIP) -> list[SegmentRecord]:
        """Return the segments that the metadata lists, by default in any state."""
        wanted = states or tuple(SegmentState)
        return list(self.metadata.list_remote_log_segments(tip, states=wanted))

    def stored(self, *, tip: TopicIdPartition = TIP) -> list[tuple[int, int]]:
        """Return (base, end) of each finished segment, ascending."""
        finished = self.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
        return [(r.metadata.offsets.start_offset, r.metadata.offsets.end_offset) for r in finished]

    def object_names(self) -> Sequence[str]:
        return [info.name for info in self.objects.list("")]

    def fingerprint(self) -> object:
        """Return a value that stays equal while nothing but the time changes."""
        return (
            self.object_names(),
            [(r.metadata, r.is_dead_lettered) for tip in self.tips for r in self.records(tip=tip)],
            [self.state(tip) for tip in self.tips],
            [(r.log_start_offset, r.first_file) for r in self._replicas()],
        )

    def _replicas(self) -> Iterator[Replica]:
        for host in self.hosts.values():
            yield from host.replicas.values()

    def _replicate(self, tip: TopicIdPartition) -> None:
        leader = self.leader(tip)
        for node_id, host in self.hosts.items():
            if node_id not in self.cut_off and host.replicas[tip] is not leader:
                host.replicas[tip].follow(leader)

    def _make_host(self, node_id: int) -> Host:
        replicas = {tip: Replica(producer_snapshot=producer_snapshot()) for tip in self.tips}
        return Host(node_id=node_id, replicas=replicas)

    def _batch(self, leader: Replica, count: int) -> bytes:
        base = leader.end_offset
        epoch = leader.leader_epoch
        assert epoch is not None, "a replica that does not lead takes no records"
        content = [
            record(
                base + number,
                b"%010d in epoch %d" % (base + number, epoch),
                timestamp_ms=self.clock.wall_ms(),
            )
            for number in range(count)
        ]
        return build_batch(content, leader_epoch=epoch)
