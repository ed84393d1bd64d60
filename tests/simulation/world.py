"""The world of a simulation: a small cluster in which brokers may also lose what was committed.

Adds to the twins' world what only a random schedule needs: elections of replicas that lag, leaders
that do not know they were deposed, outages, and how far the log start was ever allowed to be.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlm.policy.view import PolicyLimits
from rlmm.cache.memory import MemoryStore
from rlmm.events import TopicPolicy
from rsm.segment.epochs import stitch
from rsm.segment.ids import TopicIdPartition
from tests.twins.invariants import allowed_log_start
from tests.twins.process import Process, ProcessSettings
from tests.twins.replica import Replica, batch_header
from tests.twins.world import TIP, World

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
SETTINGS = ProcessSettings(
    limits=PolicyLimits(local_trim_min_age_ms=0, orphan_grace_ms=HOUR_MS),
    attempt_timeout_ms=10 * MINUTE_MS,
)
BROKERS = 3


class SimulatedWorld(World):
    """Three brokers and one partition. `store_away` and `topic_away`: nothing can be written."""

    def __init__(self, *, policy: TopicPolicy, process_type: type[Process]) -> None:
        super().__init__(
            brokers=BROKERS, policy=policy, settings=SETTINGS, process_type=process_type
        )
        self.store_away = False
        self.topic_away = False
        self.has_late_writers = True
        self.metadata.end_offset = lambda: self.topic.end_offset(0)
        self._expirable: set[bytes] = set()
        self.expires = policy.retention_ms >= 0 or policy.retention_bytes >= 0

    def note_allowed_start(self) -> None:
        """Remember the furthest that the log start was ever allowed to be.

        A decision may be carried out when the truth is another one already.
        """
        if not (self.expires or self.deleted_below):
            return
        allowed = allowed_log_start(self, TIP)
        self.allowed_before[TIP] = max(self.allowed_before.get(TIP, 0), allowed)
        self._expirable.update(self._batches_below(allowed))

    def hidden(self) -> list[str]:
        """Records below the log start that neither retention nor a client ever gave up.

        What an unclean leader takes is below it until that leader has claimed the partition.
        """
        state, leader_epoch = self.state(), self.leader().leader_epoch
        if leader_epoch is None or state.owner is None or state.owner.leader_epoch < leader_epoch:
            return []
        start_offset = state.log_start_offset or 0
        return [
            f"{batch_header(batch).base_offset} never expired and is below {start_offset}"
            for batch in self._batches_below(start_offset)
            if batch not in self._expirable
        ]

    def _batches_below(self, offset: int) -> list[bytes]:
        return [
            batch
            for file in self.leader().files
            for batch in file.batches
            if batch_header(batch).next_offset <= offset
        ]

    def lose_cache(self, node_id: int) -> None:
        """A host loses its managers with all that they keep there."""
        for process in self.running(node_id):
            process.effects.crashed = True
        self.hosts[node_id].cache = MemoryStore()

    def leader_id(self) -> int:
        """The broker of the leader with the newest epoch."""
        leader = self.leader()
        return next(n for n, replica in self.replicas() if replica is leader)

    def replicas(self) -> Iterator[tuple[int, Replica]]:
        """Each broker's replica of the partition."""
        for node_id, host in self.hosts.items():
            yield node_id, host.replicas[TIP]

    def deposed(self) -> list[Replica]:
        """Those that believe to lead and don't."""
        leader = self.leader()
        return [r for _, r in self.replicas() if r.leader_epoch is not None and r is not leader]

    def elect_unclean(self, node_id: int) -> None:
        """A replica that lags becomes the leader; what it has not got is lost."""
        self.cut_off.discard(node_id)
        self.elect(node_id)

    def moment(self) -> object:
        """Equal to an earlier one if no invariant can have changed."""
        leader = self.leader()
        return (
            self.topic.end_offset(0),
            leader.leader_epoch,
            leader.log_start_offset,
            leader.end_offset,
            self.object_names(),
        )

    def has_conflict(self) -> bool:
        """Whether unclean elections went to and fro between two histories.

        Then it can't be told any more which of the two what was trimmed belongs to: nothing is
        trimmed or deleted, and nothing is promised, until somebody decides.
        """
        return stitch(self.state().lineage, self.leader().checkpoint).conflict_offset is not None

    def heal(self) -> None:
        """All that was away is back, and everybody hears of everything."""
        self.cut_off.clear()
        self.store_away = self.topic_away = False
        for host in self.hosts.values():
            host.broker.reachable = True
        self.end_transaction()
        self.commit()

    def end_transaction(self) -> None:
        """Let the last stable offset catch up."""
        self.leader().open_transaction_offset = None
        self.commit()

    def delete_records(self, offset: int, *, tip: TopicIdPartition = TIP) -> None:
        """A client deletes through a gateway: the broker does it, then it is asked of us."""
        self.leader(tip).move_start(offset)
        self.commit(self.leader(tip).high_watermark)
        self.request_log_start(offset)
