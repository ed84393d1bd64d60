"""From options to pieces: asks the cluster and the metadata topic, takes leases, plans."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.cluster_topics import find_partitions
from spark_tools.connection import Connection
from spark_tools.reading.narrowing import MAX_OFFSET
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Piece, plan
from spark_tools.snapshot import LeaseTerms, open_snapshot


def plan_pieces(connection: Connection, options: ReadOptions) -> list[Piece]:
    """All that is to be read, as of now; what it is in stays stored for `lease_ms`.

    Raises InvalidConfigError for a cluster, topic or partition that there is not, NotFoundError for
    offsets that are not stored, RetriableError if leases can't be taken.
    """
    found = find_partitions(connection.client, options.topics, timeout_ms=options.timeout_ms)
    _require_assigned(found, options)
    every = [tip for tips in found.values() for tip in tips]
    chosen = [tip for tip in every if options.chooses(tip.topic, tip.partition)]
    terms = LeaseTerms(holder=f"spark:{socket.gethostname()}", duration_ms=options.lease_ms)
    pieces: list[Piece] = []
    with open_snapshot(connection, timeout_ms=options.timeout_ms) as snapshot:
        for tip in chosen:
            snapshot.take_lease(tip, _to_be_leased(tip, options), terms)
            pieces += plan(snapshot.partition(tip), options)
    return pieces


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
