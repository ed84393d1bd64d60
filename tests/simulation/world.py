"""The world of a simulation: a small cluster in which brokers may also lose committed records.

Adds to the twins' world what only a random schedule needs: elections of replicas that lag, leaders
that do not know that they were deposed, outages, and the highest log start ever allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from rlm.facts.share_group_start import ShareGroupStart
from rlm.policy.view import PolicyLimits
from rlmm.cache.memory import MemoryStore
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.policy import TopicPolicy
from rlmm.events.read_lease import ReadLeaseTaken
from rsm.layout.keys import ObjectKeys
from rsm.segment.coverage import covered_end, stored_ranges
from rsm.segment.epochs import Lineage, stitch
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import ByteRange, OffsetRange
from rsm.storage.memory import MemoryChunkStorage
from tests.fakes.invariants import allowed_log_start
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.replica import Replica, batch_header
from tests.fakes.unfinished_uploads import UnfinishedStorage
from tests.fakes.world import TIP, Lease, World

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
SETTINGS = ProcessSettings(
    limits=PolicyLimits(local_trim_min_age_ms=0, orphan_grace_ms=HOUR_MS, idle_copy_ms=MINUTE_MS),
    attempt_timeout_ms=10 * MINUTE_MS,
)
BROKERS = 3


class SimulatedWorld(World):
    """Three brokers, by default. `store_away`, `topic_away`: nothing can be written.

    `away` are objects that somebody has taken, and may give back. `gateway_reads` are the objects
    of the segments that a gateway knew when it registered; the gateway counts as live until
    `gateway_until_ms`. With `merges`, managers merge the small segments of streams.
    """

    def __init__(
        self,
        *,
        policy: TopicPolicy,
        process_type: type[Process],
        partitions: int = 1,
        brokers: int = BROKERS,
        merges: bool = False,
        storage_type: type[MemoryChunkStorage] = MemoryChunkStorage,
    ) -> None:
        self._histories: dict[tuple[TopicIdPartition, int], Lineage] = {}
        super().__init__(
            brokers=brokers,
            partitions=partitions,
            policy=policy,
            settings=replace(SETTINGS, limits=replace(SETTINGS.limits, merges_streams=merges)),
            process_type=process_type,
            storage_type=storage_type,
        )
        self.store_away = False
        self.topic_away = False
        self.has_late_writers = True
        self.away: dict[str, bytes] = {}
        self.gateway_reads: frozenset[str] = frozenset()
        self.gateway_until_ms = 0
        self.metadata.end_offset = lambda: self.topic.end_offset(0)
        self._expirable: set[tuple[TopicIdPartition, bytes]] = set()
        self.expires = policy.retention_ms >= 0 or policy.retention_bytes >= 0

    def elect(self, node_id: int, *, tip: TopicIdPartition = TIP) -> None:
        """Make a broker the leader, and record the history of its log."""
        super().elect(node_id, tip=tip)
        leader = self.hosts[node_id].replicas[tip]
        assert leader.leader_epoch is not None
        self._histories[tip, leader.leader_epoch] = Lineage(entries=tuple(leader.history))

    def note_allowed_start(self) -> None:
        """Record the highest log start that was ever allowed.

        A manager may carry out a decision after the truth has changed.
        """
        if not (self.expires or self.deleted_below):
            return
        for tip in self.tips:
            allowed = allowed_log_start(self, tip)
            self.allowed_before[tip] = max(self.allowed_before.get(tip, 0), allowed)
            self._expirable.update((tip, batch) for batch in self._batches_below(tip, allowed))

    def hidden(self) -> list[str]:
        """Return the records below the log start that neither retention nor a client ever gave up.

        An unclean leader's records may be below the log start until that leader has claimed the
        partition. Records of an epoch before the log start's may be hidden, too, if an unclean
        election restored them: they look like the records for which the log start was decided.
        """
        return [problem for tip in self.defined_tips() for problem in self._hidden(tip)]

    def _hidden(self, tip: TopicIdPartition) -> list[str]:
        state, leader_epoch = self.state(tip), self.leader(tip).leader_epoch
        if leader_epoch is None or state.owner is None or state.owner.leader_epoch < leader_epoch:
            return []
        start_offset = state.log_start_offset or 0
        return [
            f"{batch_header(batch).base_offset} never expired and is below {start_offset}"
            for batch in self._batches_below(tip, start_offset)
            if (tip, batch) not in self._expirable and not self._is_brought_to_life(tip, batch)
        ]

    def _is_brought_to_life(self, tip: TopicIdPartition, batch: bytes) -> bool:
        header = batch_header(batch)
        written, offset = header.partition_leader_epoch, header.base_offset
        return any(
            header.next_offset <= start.offset
            and written < start.leader_epoch
            and self._histories[tip, start.leader_epoch].epoch_for_offset(offset) != written
            for start in self.state(tip).log_starts
        )

    def _batches_below(self, tip: TopicIdPartition, offset: int) -> list[bytes]:
        return [
            batch
            for file in self.leader(tip).files
            for batch in file.batches
            if batch_header(batch).next_offset <= offset
        ]

    def delete_topic(self) -> None:
        """Remove every partition of the topic from all brokers."""
        for replica in self.replicas():
            replica.deleted = True
            replica.leader_epoch = None

    def deleted_topics(self) -> frozenset[UUID]:
        """Return the deleted topics."""
        return frozenset(tip.topic_id for tip in self.tips if self.leader(tip).deleted)

    def lose_cache(self, node_id: int) -> None:
        """End a broker's managers, and remove their state directory."""
        for process in self.running(node_id):
            process.effects.crashed = True
        self.hosts[node_id].cache = MemoryStore()

    def leader_id(self, tip: TopicIdPartition = TIP) -> int:
        """Return the broker of the leader with the newest epoch."""
        leader = self.leader(tip)
        return next(n for n, host in self.hosts.items() if host.replicas[tip] is leader)

    def replicas(self) -> Iterator[Replica]:
        """Return all replicas of every broker."""
        for host in self.hosts.values():
            yield from host.replicas.values()

    def deposed(self, tip: TopicIdPartition = TIP) -> list[Replica]:
        """Return the leaders that do not know that they were deposed."""
        leader = self.leader(tip)
        replicas = [host.replicas[tip] for host in self.hosts.values()]
        return [r for r in replicas if r.leader_epoch is not None and r is not leader]

    def elect_unclean(self, node_id: int, tip: TopicIdPartition = TIP) -> None:
        """Make a replica that lags the leader; the records that it lacks are lost."""
        self.cut_off.discard(node_id)
        self.elect(node_id, tip=tip)
        for other in self.tips:
            if other != tip:  # in these, the broker catches up before
                self.commit(tip=other)

    def moment(self) -> object:
        """Return a value that stays equal while no invariant can have changed."""
        leaders = [self.leader(tip) for tip in self.tips]
        return (
            self.topic.end_offset(0),
            [(each.leader_epoch, each.log_start_offset, each.end_offset) for each in leaders],
            self.object_names(),
        )

    def defined_tips(self) -> tuple[TopicIdPartition, ...]:
        """Return the partitions, except where unclean elections alternated between two histories.

        There, nobody knows to which history the trimmed records belong. Nothing is trimmed or
        deleted, and no invariant has to hold, until an operator decides. A log that returns empty
        does not even show that there were two histories: the claim of the leader in between counts
        as its past.
        """
        return tuple(tip for tip in self.tips if not self._parted(tip))

    def _parted(self, tip: TopicIdPartition) -> bool:
        stored, leader = self.state(tip).lineage, self.leader(tip)
        if stitch(stored, leader.checkpoint).conflict_offset is not None:
            return True
        written = Lineage(entries=tuple(leader.history))
        forgotten = (e for e in stored.entries if e.start_offset < leader.log_start_offset)
        return any(e.epoch > (written.epoch_for_offset(e.start_offset) or 0) for e in forgotten)

    def take_object(self, name: str) -> None:
        """Take an object out of the store, and keep it."""
        length_bytes = self.objects.info(name).length_bytes
        whole = ByteRange(start_position=0, end_position=length_bytes)
        self.away[name] = self.objects.read_range(name, whole)
        self.damaged_objects.add(name)
        key = ObjectKeys().parse(name)
        record = None if key is None else self.metadata.segment(key.segment_id)
        if record is not None:
            tip = record.metadata.topic_id_partition
            self.damaged_offsets.setdefault(tip, []).append(record.metadata.offsets)
        self.objects.delete(name)

    def give_back(self, name: str) -> bool:
        """Restore an object; return False if its segment has been given up meanwhile."""
        content = self.away.pop(name)
        key = ObjectKeys().parse(name)
        record = None if key is None else self.metadata.segment(key.segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            return False
        self.objects.create_with_content(name, BytesSource(content=content))
        return True

    def heal(self) -> None:
        """Restore everything that was away, and reconnect all brokers."""
        self.cut_off.clear()
        self.store_away = self.topic_away = False
        self.share_groups.started.clear()
        for name in sorted(self.away):
            self.give_back(name)
        self.pause(frozenset())
        for host in self.hosts.values():
            host.broker.reachable = True
        for tip in self.tips:
            self.end_transaction(tip)

    def commit_all(self) -> None:
        """Move every high watermark up to its log's end."""
        for tip in self.tips:
            self.commit(tip=tip)

    def end_transaction(self, tip: TopicIdPartition = TIP) -> None:
        """Let the last stable offset catch up."""
        self.leader(tip).open_transaction_offset = None
        self.commit(tip=tip)

    def unfinished_uploads(self) -> list[str]:
        """Return the names of the uploads that nobody has completed or aborted."""
        if not isinstance(self.objects, UnfinishedStorage):
            return []
        return sorted(self.objects.unfinished)

    def pause(self, tasks: frozenset[PausableTask]) -> None:
        """Pause these tasks of the topic as an operator, and resume all others."""
        event = TopicPaused(
            event_id=self.new_id(), topic=TIP.topic, topic_id=TIP.topic_id, tasks=tasks
        )
        assert self.metadata.publish(event).accepted

    def take_lease(self, tip: TopicIdPartition, offsets: OffsetRange, duration_ms: int) -> None:
        """Take a read lease."""
        at_offset = self.topic.end_offset(0)
        event = ReadLeaseTaken(
            event_id=self.new_id(),
            lease_id=self.new_id(),
            topic_id_partition=tip,
            offsets=offsets,
            duration_ms=duration_ms,
            holder="a reader",
        )
        expires_ms = self.clock.wall_ms() + duration_ms
        assert self.metadata.publish(event).accepted
        self.leases.append(
            Lease(
                topic_id_partition=tip,
                offsets=offsets,
                at_offset=at_offset,
                expires_ms=expires_ms,
            )
        )

    def begin_share_groups(self) -> None:
        """Create a share group for each partition, which has finished no record yet."""
        for tip in self.tips:
            self.share_groups.started[tip] = ShareGroupStart(group="sharers", offset=0)

    def take_records(self, tip: TopicIdPartition, offset: int) -> None:
        """Delete records at the broker itself, without a gateway."""
        leader = self.leader(tip)
        taken = OffsetRange(start_offset=leader.log_start_offset, end_offset=offset)
        self.taken.setdefault(tip, []).append(taken)
        leader.move_start(offset)
        self.commit(leader.high_watermark, tip=tip)

    def unrecorded(self) -> list[str]:
        """Return the records that were taken, are not stored, and are in no recorded gap."""
        return [
            f"{tip}: {taken} was taken, and is neither stored nor on record"
            for tip in self.defined_tips()
            for taken in self.taken.get(tip, ())
            if self._known_end(tip, taken) < taken.end_offset
        ]

    def _known_end(self, tip: TopicIdPartition, taken: OffsetRange) -> int:
        state = self.state(tip)
        start_offset = max(taken.start_offset, state.first_readable_offset or 0)
        stored = stored_ranges(state.lineage, (r.metadata for r in self.records(tip=tip)))
        gaps = [gap.offsets for gap in state.gaps]
        return max(start_offset, covered_end(stored, start_offset, gaps=gaps))

    def delete_records(self, offset: int, *, tip: TopicIdPartition = TIP) -> None:
        """Delete records through a gateway: first at the broker, then by a requested log start."""
        self.leader(tip).move_start(offset)
        self.commit(self.leader(tip).high_watermark, tip=tip)
        self.request_log_start(offset, tip=tip)
