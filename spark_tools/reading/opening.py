"""Opens the metadata topic for plans, and checks before a read that it can succeed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial

from rsm.segment.errors import InvalidConfigError
from spark_tools.cluster_topics import MissingTopicError, find_partitions
from spark_tools.connection import ClusterConnection
from spark_tools.leases.renewal import LeaseHolder, LeaseRenewal, new_holder
from spark_tools.leases.topic import LeaseTopic
from spark_tools.reading.chosen_partitions import find_chosen
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Task
from spark_tools.reading.planner import PlanLeases, Planner
from spark_tools.snapshot import open_snapshot


@contextmanager
def open_planner(
    connection: ClusterConnection,
    options: ReadOptions,
    leases: LeaseHolder | None = None,
    *,
    keeps_leases: bool = True,
) -> Iterator[Planner]:
    """Open the metadata for plans. `leases` renews the read leases that the plans take.

    If it is None, the leases are renewed until the block ends, and then released. Raises
    InvalidConfigError if the cluster does not answer, or if a topic or a partition does not exist.
    """
    chosen = find_chosen(connection.client, options)
    with (
        open_snapshot(connection, timeout_ms=options.timeout_ms) as metadata,
        nullcontext(leases) if leases else closing(LeaseRenewal(new_holder())) as holder,
    ):
        topic = LeaseTopic(
            client=connection.client,
            name=connection.metadata_topic,
            partition_count=metadata.identity.partition_count,
        )
        own = PlanLeases(
            holder=holder.holder, taken=partial(holder.hold, topic), keeps=keeps_leases
        )
        yield Planner(chosen, metadata, connection.client, own)


def plan_tasks(
    connection: ClusterConnection, options: ReadOptions, leases: LeaseHolder
) -> list[Task]:
    """Return the tasks of `Planner.batch`; `leases` renews the read leases that it takes."""
    with open_planner(connection, options, leases) as planner:
        return planner.batch(options)


def require_readable(connection: ClusterConnection, options: ReadOptions) -> None:
    """Raise InvalidConfigError unless all topics exist and the brokers and the store answer."""
    find_chosen(connection.client, options)
    metadata_topic = connection.metadata_topic
    try:
        find_partitions(connection.client, [metadata_topic], timeout_ms=options.timeout_ms)
    except MissingTopicError as error:
        raise InvalidConfigError(
            "cannot read the metadata topic", topic=metadata_topic, reason=error
        ) from error
    connection.store.require_answer()
