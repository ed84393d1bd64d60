"""The state of a world that its managers share, and its past as far as invariants depend on it.

Two schedules that lead to equal states, with managers that have observed the same, have the same
future: one of them need not be continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from uuid import UUID

from rlmm import codec
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.follow.applier import Applier
from rlmm.follow.progress import Progress
from rlmm.positions import ReadPosition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from tests.fakes.process import Process
from tests.fakes.replica import Replica
from tests.simulation.world import SimulatedWorld

_ALL_RECORDS = 100_000
_NO_ID = UUID(int=0)


def replica_state(replica: Replica) -> object:
    """Return all of a replica."""
    return (
        [(file.base_offset, file.batches, file.writes) for file in replica.files],
        (replica.first_file, replica.log_start_offset, replica.highest_start_offset),
        (replica.high_watermark, replica.open_transaction_offset, replica.leader_epoch),
        [(e.epoch, e.start_offset) for e in replica.epochs],
        [(e.epoch, e.start_offset) for e in replica.history],
        (replica.offline, replica.deleted),
    )


class FoldedLog:
    """The metadata topic of a world as a state: its records with their fates.

    The effect of a record depends on the records accepted before it (rlmm/fold.py). Its offset
    decides nothing more, except whether a lease came before it; no scope has gateways, dead letters
    or compaction. So two orders of the same records are one state if each record has the same fate
    in both, and both fold to the same state of the partition.
    """

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._progress = Progress()
        topic = MemoryTopic(log)
        topic.assign({0: ReadPosition(offset=0)})
        self._applier = Applier(topic, MetadataCache(MemoryStore()), self._progress)
        self._read_offset = 0
        self._fates: list[tuple[int, str]] = []
        self._order = blake2b(digest_size=16)

    def fates(self) -> Sequence[tuple[int, str]]:
        """Return the offset and the outcome of each record."""
        new = self._log.records_from(0, self._read_offset, _ALL_RECORDS)
        events = [r.value and codec.decode(r.key, r.value) for r in new]
        ids = [getattr(event, "event_id", _NO_ID).bytes for event in events]
        for event_id in ids:
            self._progress.expect(event_id)
        if new:
            self._applier.step(max_records=_ALL_RECORDS, timeout_ms=0, partition_count=1)
            self._read_offset = new[-1].offset + 1
        for record, event_id in zip(new, ids, strict=True):
            fate = repr((record.key, record.value, self._progress.result(event_id)))
            self._fates.append((record.offset, fate))
            self._order.update(repr(self._fates[-1]).encode())
        return self._fates

    def order(self) -> bytes:
        """Return a digest of all records in their order, as of the last call of `fates`."""
        return self._order.digest()


def world_digest(world: SimulatedWorld, log: FoldedLog) -> bytes:
    """Return a value that is equal for two worlds only if their futures are equal."""
    leased_at = [lease.at_offset for lease in world.leases]
    fates = [(fate, sum(at < offset for at in leased_at)) for offset, fate in log.fates()]
    shared = (
        (sorted(fates), [world.state(tip) for tip in world.tips]),
        (world.clock.wall_ms(), world.clock.monotonic_ms()),
        [
            (info.name, info.length_bytes, info.crc32c, info.last_modified_ms)
            for info in world.objects.list("")
        ],
        [
            (host.node_id, host.broker.reachable, tip.partition, replica_state(replica))
            for host in world.hosts.values()
            for tip, replica in host.replicas.items()
        ],
        world.dead_letters.published,
        (sorted(world.cut_off), world.store_away, world.topic_away),
    )
    numbers = {process: number for number, process in enumerate(world.processes)}
    managers = [process.alive for process in world.processes]
    remembered = (*_remembered(world), _audited(world, numbers))
    return blake2b(repr((shared, managers, remembered)).encode(), digest_size=16).digest()


def _remembered(world: SimulatedWorld) -> tuple[object, ...]:
    return (
        [replace(lease, at_offset=0) for lease in world.leases],
        world.deleted_below,
        world.taken,
        world.allowed_before,
        sorted((tip.partition, batch) for tip, batch in world._expirable),
        [(tip.partition, epoch, lineage) for (tip, epoch), lineage in world._histories.items()],
    )


def _audited(world: SimulatedWorld, numbers: dict[Process, int]) -> object:
    """Return what the audit knows of each process."""
    audit = world.audit
    confirmed = sorted(
        (
            numbers[process],
            [
                (tip.partition, known.owner and numbers[known.owner], known.recorded_offset)
                for tip, known in by_tip.items()
            ],
        )
        for process, by_tip in audit._confirmed.items()
    )
    claimed = [(writer, numbers[process]) for writer, process in audit._claimed_by.items()]
    return (confirmed, sorted(map(repr, claimed)), audit.shed, audit.violations)
