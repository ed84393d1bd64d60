"""`rlm read`: prints the records of one partition from both tiers, each once and in order."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from rlm.broker.cluster import ClusterView
from rlm.broker.partition_reader import PartitionReader, ReaderSettings
from rlm.cli.invocation.log_bounds import Bound, PartitionName
from rlm.cli.invocation.named_topic import find_partition
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.reading.damage_report import report_damage
from rlm.cli.reading.record_lines import human_line, json_lines
from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.tiered_log import RemoteTier, TieredLog
from rlm.remote_read.timestamps import RemoteTimestamps
from rlm.worker.external import client_properties, open_chunk_storage, storage_manager
from rsm.read.segment_scan import ScanSettings
from rsm.segment.batches.aborted import Isolation
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    TieredStorageError,
)
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange

_FETCH_THREADS = 2
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
_LINES_AT_ONCE = 500
"""Few enough to stay in the processor's cache until written; a batch may have thousands."""

_Partition = Annotated[str, typer.Argument(metavar="TOPIC:PARTITION", help="The partition.")]
_From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="OFFSET|TIME", help="The first record; the log's start if not given."
    ),
]
_To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="OFFSET|TIME",
        help="End before this record; the log's current end if not given.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """The records that the command line selects."""

    name: PartitionName
    begin: Bound | None
    end: Bound | None
    isolation: Isolation


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("read", epilog="Example: rlm read orders:0 --from 2030-01-31T12:00:00Z --json")(
        _read
    )


@with_cluster_options
def _read(
    partition: _Partition,
    *,
    begin: _From = None,
    end: _To = None,
    isolation: Annotated[
        Isolation,
        typer.Option(
            "--isolation-level", help="read_committed omits records of aborted transactions."
        ),
    ] = Isolation.READ_UNCOMMITTED,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the records of a partition, stored and local ones.

    A time is ISO 8601 (UTC unless it names a zone), or @ and milliseconds since 1970. It selects
    the first record that is not older. Stored records need the store's settings.
    """
    settings = cluster.config
    wanted = _Selection(
        name=PartitionName.parse(partition),
        begin=None if begin is None else Bound.parse(begin, option="--from"),
        end=None if end is None else Bound.parse(end, option="--to"),
        isolation=isolation,
    )
    with open_session(settings, timeout_ms=cluster.timeout_ms) as session:
        with reaching_cluster(settings):
            view = session.bootstrap.view((wanted.name.topic,))
        found = _find(view, wanted.name)
        with _tiered_log(session, found, isolation, cluster.timeout_ms) as (log, local):
            offsets = _range(log, local, wanted)
            with _reporting_damage(session), _seldom_collecting():
                _print(log, found, offsets, as_json=as_json)


def _find(view: ClusterView, name: PartitionName) -> TopicIdPartition:
    if name.partition is None:
        raise InvalidConfigError(
            "the command needs one partition", found=name.topic, expected="TOPIC:PARTITION"
        )
    topic = find_partition(view, name)
    return TopicIdPartition(topic_id=topic.topic_id, topic=name.topic, partition=name.partition)


@contextmanager
def _tiered_log(
    session: CommandSession,
    partition: TopicIdPartition,
    isolation: Isolation,
    stall_timeout_ms: int,
) -> Iterator[tuple[TieredLog, PartitionReader]]:
    local = PartitionReader(
        partition,
        session.bootstrap,
        session.clock,
        ReaderSettings(
            client=client_properties(session.config.cluster),
            read_committed=isolation is Isolation.READ_COMMITTED,
            stall_timeout_ms=stall_timeout_ms,
        ),
    )
    with ExitStack() as stack:
        remote = _remote_tier(session, stack)
        log = TieredLog(
            partition, metadata=session.metadata, remote=remote, local=local, isolation=isolation
        )
        yield log, local


@contextmanager
def _reporting_damage(session: CommandSession) -> Iterator[None]:
    """Record a damaged object as an anomaly; then raise the error of the read."""
    try:
        yield
    except (NotFoundError, CorruptError) as error:
        try:
            report_damage(session.metadata, session.clock, error)
        except TieredStorageError as refused:
            typer.echo(f"rlm: cannot record the damaged object: {refused}", err=True)
        raise


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Run the collector of reference cycles seldom, because thousands of records form no cycles."""
    youngest, *others = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *others)
    try:
        yield
    finally:
        gc.set_threshold(youngest, *others)


def _remote_tier(session: CommandSession, stack: ExitStack) -> RemoteTier | None:
    """Return the store, if one is configured; the stack closes it."""
    settings = session.config.storage
    if settings is None:
        return None
    storage = storage_manager(settings, open_chunk_storage(settings))
    stack.callback(storage.close)
    executor = stack.enter_context(ThreadPoolExecutor(_FETCH_THREADS, "remote-fetch"))
    reader = RemoteLogReader(session.metadata, storage, executor, ScanSettings())
    timestamps = RemoteTimestamps(session.metadata, reader)
    return RemoteTier(storage=storage, reader=reader, timestamps=timestamps)


def _range(log: TieredLog, local: PartitionReader, wanted: _Selection) -> OffsetRange:
    """Return the selected offsets within the current log. NotFoundError outside of it."""
    ends = local.offsets()
    committed = wanted.isolation is Isolation.READ_COMMITTED
    log_end = ends.last_stable_offset if committed else ends.high_watermark
    log_start = log.start_offset()
    begin = _offset_of(log, wanted.begin, default=log_start, log_end=log_end)
    end = _offset_of(log, wanted.end, default=log_end, log_end=log_end)
    if not log_start <= begin <= log_end:
        raise NotFoundError(
            "offset out of range", offset=begin, log_start_offset=log_start, end_offset=log_end
        )
    return OffsetRange(start_offset=begin, end_offset=max(begin, min(end, log_end)))


def _offset_of(log: TieredLog, bound: Bound | None, *, default: int, log_end: int) -> int:
    if bound is None:
        return default
    if bound.offset is not None:
        return bound.offset
    found = log.offset_since(bound.timestamp_ms or 0)
    return log_end if found is None else min(found, log_end)


def _print(
    log: TieredLog, partition: TopicIdPartition, offsets: OffsetRange, *, as_json: bool
) -> None:
    """Write a line per record; end quietly when the reader of the output is gone."""
    for found in log.read(offsets.start_offset, offsets.end_offset):
        for start in range(0, len(found.records), _LINES_AT_ONCE):
            records = found.records[start : start + _LINES_AT_ONCE]
            lines = (
                json_lines(partition, found.tier, records)
                if as_json
                else [human_line(found.tier, record) for record in records]
            )
            with printing():
                sys.stdout.write("\n".join(lines) + "\n")
