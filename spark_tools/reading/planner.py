"""From options to pieces: asks the cluster and the metadata topic, takes leases, plans."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rsm.segment.aborted import Isolation
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.cluster_topics import find_local_offsets, find_partitions
from spark_tools.connection import Connection
from spark_tools.reading.narrowing import MAX_OFFSET
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Piece, plan
from spark_tools.snapshot import LeaseTerms, MetadataSnapshot, open_snapshot
from spark_tools.stored_partition import StoredPartition


class Planner:
    """Plans reads of some partitions by metadata that is open. One thread's."""

    def __init__(
        self,
        partitions: Sequence[TopicIdPartition],
        metadata: MetadataSnapshot,
        client: Mapping[str, str],
    ) -> None:
        self.partitions = tuple(partitions)
        self._metadata = metadata
        self._client = client

    def pieces(self, options: ReadOptions) -> list[Piece]:
        """All that is to be read, as of now; what it is in stays stored for `lease_ms`.

        Raises NotFoundError for offsets that are not stored, RetriableError if leases can't be
        taken.
        """
        local = self._local(options)
        terms = LeaseTerms(holder=f"spark:{socket.gethostname()}", duration_ms=options.lease_ms)
        pieces: list[Piece] = []
        for tip in self.partitions:
            if options.chooses(tip.topic, tip.partition):
                self._metadata.take_lease(tip, _to_be_leased(tip, options), terms)
                pieces += plan(self._metadata.partition(tip), options, local.get(tip))
        return pieces

    def _local(self, options: ReadOptions) -> Mapping[TopicIdPartition, OffsetRange]:
        """What the brokers have of the partitions whose reading goes on there.

        The metadata is read on behind the brokers' answers: what is trimmed from then on does not
        matter, and what was trimmed before is known to be stored.
        """
        continued = [
            tip
            for tip in self.partitions
            if options.chooses(tip.topic, tip.partition)
            and options.continues(tip.topic, tip.partition)
        ]
        if not continued:
            return {}
        found = find_local_offsets(
            self._client,
            continued,
            read_committed=options.isolation is Isolation.READ_COMMITTED,
            timeout_ms=options.timeout_ms,
        )
        self._metadata.catch_up(continued)
        return found

    def look_for_new(self, options: ReadOptions) -> None:
        """Take in the partitions that were added; a topic that was created anew stays the old one.

        InvalidConfigError for a cluster or topic that there is not any more.
        """
        self.partitions = _with_added(self.partitions, _find_chosen(self._client, options))

    def partition(self, tip: TopicIdPartition) -> StoredPartition:
        """What is stored of one, as far as the metadata was read."""
        return self._metadata.partition(tip)

    def stored(self) -> list[StoredPartition]:
        """What is stored of each partition now. RetriableError if that can't be known in time."""
        self._metadata.catch_up(self.partitions)
        return [self._metadata.partition(tip) for tip in self.partitions]


@contextmanager
def open_planner(connection: Connection, options: ReadOptions) -> Iterator[Planner]:
    """InvalidConfigError for a cluster, topic or partition that there is not."""
    chosen = _find_chosen(connection.client, options)
    with open_snapshot(connection, timeout_ms=options.timeout_ms) as metadata:
        yield Planner(chosen, metadata, connection.client)


def plan_pieces(connection: Connection, options: ReadOptions) -> list[Piece]:
    """As `Planner.pieces`, once."""
    with open_planner(connection, options) as planner:
        return planner.pieces(options)


def _find_chosen(client: Mapping[str, str], options: ReadOptions) -> list[TopicIdPartition]:
    """InvalidConfigError for a cluster, topic or partition that there is not."""
    return _choose(find_partitions(client, options.topics, timeout_ms=options.timeout_ms), options)


def _choose(
    found: Mapping[str, Sequence[TopicIdPartition]], options: ReadOptions
) -> list[TopicIdPartition]:
    """Return the chosen ones of each topic's partitions. InvalidConfigError if one is missing."""
    _require_assigned(found, options)
    every = (tip for tips in found.values() for tip in tips)
    return [tip for tip in every if options.chooses(tip.topic, tip.partition)]


def _with_added(
    known: Sequence[TopicIdPartition], found: Sequence[TopicIdPartition]
) -> tuple[TopicIdPartition, ...]:
    """Append the found partitions whose topic name and number no known partition has."""
    names = {(tip.topic, tip.partition) for tip in known}
    return (*known, *(tip for tip in found if (tip.topic, tip.partition) not in names))


def _require_assigned(
    found: Mapping[str, Sequence[TopicIdPartition]], options: ReadOptions
) -> None:
    for topic, assigned in (options.partitions or {}).items():
        if missing := assigned - {tip.partition for tip in found[topic]}:
            raise InvalidConfigError("there is no such partition", topic=topic, found=min(missing))


def _to_be_leased(tip: TopicIdPartition, options: ReadOptions) -> OffsetRange:
    """What may be read of a partition, as far as the options tell before it is looked at."""
    start_offset = max(0, options.starting.of(tip.topic, tip.partition))
    end_offset = options.ending.of(tip.topic, tip.partition)
    end_offset = end_offset if end_offset >= 0 else MAX_OFFSET
    return OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))
