"""`rlm read --from-store`: prints records without brokers or the metadata topic.

Memory: that of the search for segments (rsm.read.store_scan), about 2 KB for each segment of a
partition, and that of a scan (rsm.read.segment_scan).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from uuid import UUID

from rlm.cli.invocation.log_bounds import Bound, PartitionName
from rlm.cli.reading.record_printing import print_records
from rlm.cli.reading.selection import Selection
from rlm.remote_read.reader import LookedUpReader
from rlm.remote_read.store_only_log import StoreOnlyLog
from rlm.worker.log_lines import configure_command_logging
from rlm.worker.store_access import open_chunk_storage, open_storage_manager
from rsm.config.storage import StorageConfig
from rsm.opening import open_store_scan
from rsm.read.store_scan import PartitionScan, StoreScan
from rsm.segment.errors import InvalidConfigError, NotFoundError
from rsm.segment.ids import TopicIdPartition, id_from_text, id_to_text
from rsm.segment.log_line import LogLine
from rsm.spi import RemoteStorageManager

_log = logging.getLogger(__name__)

_FETCH_THREADS = 8


def print_from_store(
    config: StorageConfig, wanted: Selection, topic_id: str | None, *, as_json: bool
) -> None:
    """Print the selected records of one partition, or of all partitions of a topic in order.

    Raises InvalidConfigError if an offset is given but no partition, if the id is invalid, or if
    several topics have the name. Raises NotFoundError if the topic, the partition or the offset is
    not stored. Raises the errors of StoreScan and StoreOnlyLog.
    """
    _require_usable_bounds(wanted)
    given_id = None if topic_id is None else id_from_text(topic_id)
    configure_command_logging(sys.stderr)
    storage = open_chunk_storage(config)
    with (
        closing(open_storage_manager(config, storage)) as segments,
        ThreadPoolExecutor(_FETCH_THREADS, "remote-fetch") as executor,
    ):
        scan = open_store_scan(config.segments(), storage)
        partitions = _partitions(scan, wanted.name, given_id, key_prefix=config.key_prefix)
        for partition in partitions:
            found = scan.partition(partition, executor)
            _warn(found)
            if wanted.name.partition is None and _is_empty(found):
                continue
            _print(found, segments, executor, wanted, as_json=as_json)


def _require_usable_bounds(wanted: Selection) -> None:
    for option, bound in (("--from", wanted.begin), ("--to", wanted.end)):
        if wanted.name.partition is None and bound is not None and bound.offset is not None:
            raise InvalidConfigError(
                "cannot use the offset: it belongs to one partition, but the command reads several",
                option=option,
                found=bound.offset,
                advice="Name one partition as TOPIC:PARTITION, or give a time",
            )


def _partitions(
    scan: StoreScan, name: PartitionName, topic_id: UUID | None, *, key_prefix: str
) -> Sequence[TopicIdPartition]:
    """Return the selected partitions that have objects in the store."""
    if topic_id is None:
        topic_id = _only_id(name.topic, scan.topic_ids(name.topic), key_prefix=key_prefix)
    stored = scan.partitions(name.topic, topic_id)
    if not stored:
        raise _no_topic(name.topic, key_prefix=key_prefix, topic_id=id_to_text(topic_id))
    selected = [each for each in stored if name.partition in (None, each.partition)]
    if not selected:
        raise NotFoundError(
            "cannot find the partition: the store has no objects of the partition",
            topic=name.topic,
            partition=name.partition,
            stored_partitions=",".join(str(each.partition) for each in stored),
            advice="Name one of the stored partitions",
        )
    return selected


def _only_id(topic: str, ids: Sequence[UUID], *, key_prefix: str) -> UUID:
    if not ids:
        raise _no_topic(topic, key_prefix=key_prefix)
    if len(ids) > 1:
        raise InvalidConfigError(
            "cannot select the topic: the store has several topics of this name",
            topic=topic,
            topic_ids=",".join(map(id_to_text, ids)),
            advice="One was deleted and created again: give the id of one of them as --topic-id",
        )
    return ids[0]


def _no_topic(topic: str, *, key_prefix: str, **context: object) -> NotFoundError:
    return NotFoundError(
        "cannot find the topic: the store has no objects of the topic",
        topic=topic,
        key_prefix=repr(key_prefix),
        **context,
        advice="Check its name, its id and rsm.config.key.prefix",
    )


def _is_empty(found: PartitionScan) -> bool:
    """Return whether the scan found no segment to read, for example before the first copy."""
    return not found.segments and not found.unreadable


def _warn(found: PartitionScan) -> None:
    """Log what the command does not read; unfinished uploads are normal while managers run."""
    partition = found.topic_id_partition
    for unreadable in found.unreadable:
        _log.warning(LogLine("cannot read a stored segment", reason=unreadable.error))
    for deleted in found.partly_deleted:
        _log.warning(
            LogLine(
                "ignored a segment that lacks an object: its deletion did not end, or the object "
                "is lost",
                partition=partition,
                offsets=deleted.offsets,
                missing_object=deleted.missing_key,
            )
        )
    if found.unfinished_keys:
        _log.info(
            LogLine(
                "ignored uploads that have not finished",
                partition=partition,
                uploads=len(found.unfinished_keys),
                first_object=found.unfinished_keys[0],
            )
        )


def _print(
    found: PartitionScan,
    segments: RemoteStorageManager,
    executor: Executor,
    wanted: Selection,
    *,
    as_json: bool,
) -> None:
    log = StoreOnlyLog(found, segments, LookedUpReader(segments, executor), wanted.isolation)
    stored = log.offsets()
    begin = _offset_of(log, wanted.begin, default=stored.start_offset, end_offset=stored.end_offset)
    end = _offset_of(log, wanted.end, default=stored.end_offset, end_offset=stored.end_offset)
    if not stored.start_offset <= begin <= stored.end_offset:
        raise NotFoundError(
            "cannot read records: the stored log does not contain the offset",
            partition=found.topic_id_partition,
            offset=begin,
            first_stored_offset=stored.start_offset,
            end_offset=stored.end_offset,
            advice="Give an offset from first_stored_offset to end_offset as --from",
        )
    print_records(
        found.topic_id_partition,
        log.read(begin, None if end >= stored.end_offset else max(begin, end)),
        as_json=as_json,
        shows_partition=wanted.name.partition is None,
    )


def _offset_of(log: StoreOnlyLog, bound: Bound | None, *, default: int, end_offset: int) -> int:
    if bound is None:
        return default
    if bound.offset is not None:
        return bound.offset
    since = log.offset_since(bound.timestamp_ms or 0)
    return end_offset if since is None else since
