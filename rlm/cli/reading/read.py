"""`rlm read`: prints the records of a partition from both tiers, or from the store alone.

Prints each record once and in order. Without `--from-store`, the command also records an anomaly if
a stored object is missing or corrupt.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Annotated
from uuid import uuid4

import typer

from rlm.broker.partition_reader import PartitionReader, ReaderSettings
from rlm.cli.invocation.log_bounds import Bound, PartitionName
from rlm.cli.invocation.named_topic import find_partition
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.reading.record_printing import print_records
from rlm.cli.reading.selection import Selection
from rlm.cli.reading.store_reading import print_from_store
from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.anomaly_reporter import AnomalyReporter
from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.tiered_log import RemoteTier, TieredLog
from rlm.remote_read.timestamps import RemoteTimestamps
from rlm.worker.cluster_access import client_properties
from rlm.worker.store_access import open_chunk_storage, open_storage_manager
from rlmm.spi import RemoteLogMetadataManager
from rsm.read.segment_scan import ScanSettings
from rsm.segment.batches.aborted import Isolation
from rsm.segment.clock import Clock
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    TieredStorageError,
)
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.ranges import OffsetRange

_FETCH_THREADS = 2

_Partition = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC:PARTITION",
        help="The partition. With --from-store, TOPIC alone reads all its partitions, in order.",
    ),
]
_From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="OFFSET|TIME", help="Begin at this record; default: the log's start."
    ),
]
_To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="OFFSET|TIME",
        help="End before this record; default: the log's current end.",
    ),
]


_FromStore = Annotated[
    bool,
    typer.Option(
        "--from-store",
        help="Read the store alone, without brokers or the metadata topic. The configuration needs "
        "only the settings of the store.",
    ),
]
_TopicId = Annotated[
    str | None,
    typer.Option(
        "--topic-id",
        metavar="ID",
        help="With --from-store: the topic's id, if the store has several topics of this name.",
    ),
]
_EXAMPLES = """Examples:

\b
  rlm read orders:0 --from 2030-01-31T12:00:00Z --json
  rlm read orders --from-store --json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("read", epilog=_EXAMPLES)(_read)


@with_cluster_options
def _read(
    partition: _Partition,
    *,
    begin: _From = None,
    end: _To = None,
    isolation: Annotated[
        Isolation,
        typer.Option(
            "--isolation-level",
            help="read_committed omits records of aborted and open transactions.",
        ),
    ] = Isolation.READ_UNCOMMITTED,
    from_store: _FromStore = False,
    topic_id: _TopicId = None,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the records of a partition from both tiers.

    A time is ISO 8601 (UTC unless it names a zone), or @ and milliseconds since 1970. It selects
    the first record with this or a later timestamp. To print stored records, the command needs the
    store's settings.

    --from-store prints the records of the store's complete segments. It fails at an offset that no
    complete segment contains. To continue after that offset, use --from.
    """
    wanted = Selection(
        name=PartitionName.parse(partition),
        begin=None if begin is None else Bound.parse(begin, option="--from"),
        end=None if end is None else Bound.parse(end, option="--to"),
        isolation=isolation,
    )
    if from_store:
        print_from_store(cluster.store_config(), wanted, topic_id, as_json=as_json)
        return
    if topic_id is not None:
        raise InvalidConfigError(
            "--topic-id has no effect without --from-store", advice="Give both or neither"
        )
    _print_both_tiers(cluster, wanted, as_json=as_json)


def _print_both_tiers(cluster: ClusterOptions, wanted: Selection, *, as_json: bool) -> None:
    number = wanted.name.partition
    if number is None:
        raise InvalidConfigError(
            "cannot read records: the command needs one partition",
            found=wanted.name.topic,
            expected="TOPIC:PARTITION",
        )
    settings = cluster.config
    with open_session(settings, timeout_ms=cluster.timeout_ms) as session:
        with reaching_cluster(settings):
            view = session.bootstrap.view((wanted.name.topic,))
        topic_id = find_partition(view, wanted.name).topic_id
        found = TopicIdPartition(topic_id=topic_id, topic=wanted.name.topic, partition=number)
        with _tiered_log(session, found, wanted.isolation, cluster.timeout_ms) as (log, local):
            offsets = _range(log, local, wanted)
            records = log.read(offsets.start_offset, offsets.end_offset)
            with _reporting_damage(session):
                print_records(found, records, as_json=as_json)


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


def report_damage(
    metadata: RemoteLogMetadataManager, clock: Clock, error: NotFoundError | CorruptError
) -> None:
    """Record the damaged object of a read's error; do nothing if it names no known segment.

    Raises RetriableError if the metadata topic cannot be written.
    """
    segment_id = error.context.get("segment_id")
    if not isinstance(segment_id, RemoteLogSegmentId):
        return
    record = metadata.segment(segment_id)
    if record is None:
        return
    anomalies = ReadAnomalies(clock)
    anomalies.record(record.metadata, error, offset=record.metadata.offsets.start_offset)
    AnomalyReporter(anomalies, metadata, clock, uuid4).step()


def _remote_tier(session: CommandSession, stack: ExitStack) -> RemoteTier | None:
    """Return the store's readers; None if no store is configured. The stack closes them."""
    settings = session.config.storage
    if settings is None:
        return None
    storage = open_storage_manager(settings, open_chunk_storage(settings))
    stack.callback(storage.close)
    executor = stack.enter_context(ThreadPoolExecutor(_FETCH_THREADS, "remote-fetch"))
    reader = RemoteLogReader(session.metadata, storage, executor, ScanSettings())
    timestamps = RemoteTimestamps(session.metadata, reader)
    return RemoteTier(storage=storage, reader=reader, timestamps=timestamps)


def _range(log: TieredLog, local: PartitionReader, wanted: Selection) -> OffsetRange:
    """Return the selected offsets. Raises NotFoundError if they begin outside of the log."""
    ends = local.offsets()
    committed = wanted.isolation is Isolation.READ_COMMITTED
    log_end = ends.last_stable_offset if committed else ends.high_watermark
    log_start = log.start_offset()
    begin = _offset_of(log, wanted.begin, default=log_start, log_end=log_end)
    end = _offset_of(log, wanted.end, default=log_end, log_end=log_end)
    if not log_start <= begin <= log_end:
        raise NotFoundError(
            "cannot read records: the log does not contain the offset",
            offset=begin,
            log_start_offset=log_start,
            end_offset=log_end,
            advice="Give an offset from log_start_offset to end_offset as --from",
        )
    return OffsetRange(start_offset=begin, end_offset=max(begin, min(end, log_end)))


def _offset_of(log: TieredLog, bound: Bound | None, *, default: int, log_end: int) -> int:
    if bound is None:
        return default
    if bound.offset is not None:
        return bound.offset
    found = log.offset_since(bound.timestamp_ms or 0)
    return log_end if found is None else min(found, log_end)
