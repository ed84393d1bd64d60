"""Draws random logs of metadata events, as leaders, zombies and repair jobs may write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import strategies as st

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.events.offload_segment import status_key_id
from rlmm.events.pause import PausableTask
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import (
    RecordKey,
    RecordKind,
    partition_key,
    segment_subject,
)
from rlmm.state.log_starts import LogStart
from rlmm.state.offload_segments import OffloadSegmentStatus
from rlmm.topic.memory import MemoryLog
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata, Writer
from tests.folding import LiveFold, append
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    DELETED,
    DELETING,
    FINISHED,
    MARKED,
    ORDERS,
    STARTED,
    anomaly,
    anomaly_reported,
    claim,
    cluster_secret,
    dead_lettered,
    gap,
    gaps,
    log_start,
    log_start_request,
    loss_accepted,
    offload_request,
    offload_segment,
    offload_segment_changed,
    partition_delete,
    paused,
    policy,
    policy_key,
    read_lease,
    registration,
    segment_metadata,
    step,
    trim,
    writer,
)

TIMEOUT_MS = 50
GRACE_MS = 100
WRITERS = [writer(0), writer(1), writer(1, incarnation=0xB2), writer(2, broker_id=2)]
SEGMENTS = [
    segment_metadata(number, start, start + 60, epochs=((0, start), (number, start + 20)))
    for number, start in enumerate((0, 30, 60, 60), start=1)
]


@dataclass
class World:
    """A log that `act` extends as leaders, zombies and jobs may; only owners write tombstones."""

    draw: st.DrawFn
    clock: ManualClock = field(default_factory=lambda: ManualClock(now_ms=1_000))
    deadlines_ms: dict[int, int] = field(default_factory=dict)
    retired: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.begins = [self.draw(st.integers(1, 6)) for _ in range(2)]
        self.log = MemoryLog(self.clock)
        self._live = LiveFold(self.log, MemoryStore())
        self.write(claim(WRITERS[0]))

    def act(self) -> None:
        self.clock.now_ms += self.draw(st.sampled_from([0, 1, 10, TIMEOUT_MS, GRACE_MS * 2]))
        often: list[Callable[[], None]] = [self.copy, self.delete, self.write_tombstones]
        seldom: list[Callable[[], None]] = [
            self.own,
            self.move_offset,
            self.request,
            self.record_gaps,
            self.offload,
            self.accept_loss,
            self.last_writer,
            self.lease,
            self.anomaly,
            self.account,
            self.newer,
            self.delete_partition,
        ]
        actions = [*often, *often, *seldom]
        actions[self.draw(st.integers(0, len(actions) - 1))]()

    def copy(self) -> None:
        number, metadata = self.segment()
        if number not in self.retired and self.draw(st.booleans()):
            self.deadlines_ms.setdefault(number, self.clock.now_ms + TIMEOUT_MS)
            self.write(step(metadata, STARTED, copy_timeout_ms=TIMEOUT_MS))
        else:
            deadline_ms = self.deadlines_ms.setdefault(number, self.clock.now_ms + TIMEOUT_MS)
            self.write(step(metadata, FINISHED, copy_deadline_ms=deadline_ms))

    def delete(self) -> None:
        _, metadata = self.segment()
        record = self.known().segment(metadata.segment_id)
        expected = record.metadata.state if record and self.likely() else None
        by = self.owner() if self.likely() else self.draw(st.sampled_from(WRITERS))
        self.write(step(metadata, DELETE_STARTED, by=by, expected_state=expected))
        if not self.likely():
            self.write(dead_lettered(metadata))
        if self.likely():
            self.write(step(metadata, DELETE_FINISHED))

    def own(self) -> None:
        by = self.draw(st.sampled_from(WRITERS))
        own = by.leader_epoch
        stored = self.known().partition_state(ORDERS).lineage
        # The broker's checkpoint may lack the epoch, but a stored lineage never loses one.
        is_known = self.likely() or any(each.epoch == own for each in stored.entries)
        self.write(claim(by, lineage=self.lineage(own if is_known else own - 1)))

    def move_offset(self) -> None:
        by = self.draw(st.sampled_from([self.owner(), *WRITERS]))
        if self.draw(st.booleans()):
            self.move_start(by)
            return
        own = LogStart(self.offset(), by.leader_epoch)
        written = append(self.log, trim(own.offset, by=by, lineage=self.lineage(by.leader_epoch)))
        after = self.known().partition_state(ORDERS)
        if after.owner == by and after.trims == (own,):
            self.remove_superseded(RecordKind.TRIM, written.offset)

    def move_start(self, by: Writer) -> None:
        start = LogStart(self.offset(), by.leader_epoch)
        written = append(self.log, log_start(start.offset, by=by))
        after = self.known().partition_state(ORDERS)
        if after.owner != by or start not in after.log_starts:
            return
        kinds = [RecordKind.LOG_START] if after.log_starts == (start,) else []
        kinds += [] if after.log_start_requests else [RecordKind.LOG_START_REQUEST]
        for kind in self.draw(st.permutations(kinds)):
            self.remove_superseded(kind, written.offset)

    def request(self) -> None:
        epoch = self.draw(st.integers(-1, 2))
        self.write(log_start_request(self.offset(), leader_epoch=epoch))

    def record_gaps(self) -> None:
        by = self.draw(st.sampled_from([self.owner(), *WRITERS]))
        end_offset = self.draw(st.integers(2, 9))
        written = append(self.log, gaps(gap(0, 1), gap(2, 2 + end_offset), by=by))
        cache = self.known()
        if cache.partition_state(ORDERS).owner == by and self.draw(st.booleans()):
            self.remove_superseded(RecordKind.GAPS, written.offset)

    def offload(self) -> None:
        offset = self.offset()
        before = self.known().partition_state(ORDERS)
        written = append(self.log, offload_request(offset))
        accepted = before.deletion is not DELETED and offset >= (
            before.offload_requested_offset or 0
        )
        if accepted and self.draw(st.booleans()):
            self.remove_superseded(RecordKind.OFFLOAD_REQUEST, written.offset)

    def accept_loss(self) -> None:
        epoch, offset = self.draw(st.integers(-1, 3)), self.draw(st.integers(0, 5))
        self.write(loss_accepted(epoch, offset))

    def remove_superseded(self, kind: RecordKind, before_offset: int) -> None:
        """Remove some or all keys in any order: a kill or a refusal may prevent some removals."""
        keys = self.known().superseded_keys(ORDERS, kind, before_offset)
        for key in self.draw(st.permutations(keys)):
            if self.likely():
                self.log.append(0, key.to_bytes(), None)

    def lineage(self, epoch: int) -> Lineage:
        """Return the lineage that a leader of this epoch knows, without the cuts of later ones."""
        entries = [(0, 0)]
        for later in range(1, epoch + 1):
            begin = self.begins[later - 1]
            entries = [*(each for each in entries if each[1] < begin), (later, begin)]
        return Lineage.of(*entries)

    def last_writer(self) -> None:
        pause = paused(*self.draw(st.sets(st.sampled_from(PausableTask))))
        events: list[Event] = [policy(), registration(1), registration(2), pause]
        events += [cluster_secret(1), cluster_secret(2, previous=1)]
        self.write(self.draw(st.sampled_from(events)))
        if self.draw(st.booleans()):
            self.log.append(0, encode(registration(1)).key, None)

    def lease(self) -> None:
        number = self.draw(st.integers(1, 3))
        if self.likely():
            self.write(read_lease(number, 10 * number, 50))
        else:
            key = partition_key(RecordKind.READ_LEASE, ORDERS, UUID(int=number))
            self.log.append(0, key, None)

    def anomaly(self) -> None:
        found = anomaly(self.draw(st.integers(1, 2)), attempts=self.draw(st.integers(1, 3)))
        if self.likely():
            self.write(anomaly_reported(found))
        else:
            self.log.append(0, partition_key(RecordKind.ANOMALY, ORDERS, found.id), None)

    def account(self) -> None:
        """Write any status of any offload segment, or let the owner remove one."""
        number = self.draw(st.integers(1, 2))
        status = self.draw(st.sampled_from(OffloadSegmentStatus))
        segment = offload_segment(number, status, by=self.draw(st.sampled_from(WRITERS)))
        if self.likely():
            self.write(offload_segment_changed(segment))
        else:
            key_id = status_key_id(segment.id, status)
            self.log.append(0, partition_key(RecordKind.OFFLOAD_SEGMENT, ORDERS, key_id), None)

    def newer(self) -> None:
        """Write a record that this version must not fold, of a kind with one key per subject."""
        process = RecordKey(kind=RecordKind.REGISTRATION, subject=UUID(int=9).bytes)
        keys = [policy_key(UUID(int=9)), process.to_bytes(), b"\x7f a newer kind"]
        key = self.draw(st.sampled_from(keys))
        needs = pb.MetadataEvent(min_fold_version=99).SerializeToString()
        self.log.append(0, key, self.draw(st.sampled_from([needs, None])))

    def delete_partition(self) -> None:
        """Usually write one state out of order; rarely delete correctly to the end."""
        if self.draw(st.integers(0, 3)):
            self.write(partition_delete(self.draw(st.sampled_from([MARKED, MARKED, DELETING]))))
            return
        self.write(partition_delete(MARKED))
        self.write(partition_delete(DELETING))
        for number, metadata in enumerate(SEGMENTS):
            self.end_segment(number, metadata)
        self.write(partition_delete(DELETED))
        if self.likely():
            self.write_partition_tombstones()

    def end_segment(self, number: int, metadata: RemoteLogSegmentMetadata) -> None:
        record = self.known().segment(metadata.segment_id)
        state = record.metadata.state if record else None
        if state in {STARTED, FINISHED}:
            self.write(step(metadata, DELETE_STARTED, by=self.owner(), expected_state=state))
        if state is not DELETE_FINISHED:
            self.write(step(metadata, DELETE_FINISHED))
        self.remove_records(number, metadata)

    def write_partition_tombstones(self) -> None:
        kinds = [RecordKind.TRIM, RecordKind.LOG_START, RecordKind.LOG_START_REQUEST]
        kinds += [RecordKind.READ_LEASE, RecordKind.GAPS, RecordKind.OFFLOAD_REQUEST]
        kinds += [RecordKind.LOSS_ACCEPTED, RecordKind.OFFLOAD_SEGMENT]
        for kind in (*kinds, RecordKind.CLAIM):
            for key in self.known().superseded_keys(ORDERS, kind, 1 << 62):
                self.log.append(0, key.to_bytes(), None)

    def write_tombstones(self) -> None:
        """Write tombstones as the manager does, only if no late record can be accepted."""
        number, metadata = self.segment()
        entry = self.known().segment_entry(metadata.segment_id)
        if entry is not None and entry.state is DELETE_FINISHED:
            self.remove_records(number, metadata)

    def remove_records(self, number: int, metadata: RemoteLogSegmentMetadata) -> None:
        entry = self.known().segment_entry(metadata.segment_id)
        if entry is None:
            return
        last_ms = max(entry.changed_ms, self.deadlines_ms.get(number, 0))
        self.clock.now_ms = max(self.clock.now_ms, last_ms + GRACE_MS)
        self.retired.add(number)
        subject = segment_subject(metadata.segment_id)
        for event_id in (*entry.event_ids(accepted=False), *entry.event_ids(accepted=True)):
            key = RecordKey(kind=RecordKind.SEGMENT, subject=subject, event_id=event_id)
            self.log.append(0, key.to_bytes(), None)

    def offset(self) -> int:
        return self.draw(st.integers(0, 6))

    def likely(self) -> bool:
        return self.draw(st.integers(0, 9)) < 8

    def segment(self) -> tuple[int, RemoteLogSegmentMetadata]:
        number: int = self.draw(st.integers(0, len(SEGMENTS) - 1))
        return number, SEGMENTS[number]

    def known(self) -> MetadataCache:
        """Return the state of a process that has read the whole log."""
        return self._live.caught_up()

    def owner(self) -> Writer:
        return self.known().partition_state(ORDERS).owner or WRITERS[0]

    def write(self, event: Event) -> None:
        append(self.log, event)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    world = World(draw)
    for _ in range(draw(st.integers(5, 40))):
        world.act()
    return world
