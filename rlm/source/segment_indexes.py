"""The offset and time index of a rolled segment: the broker's where they are right, else ours.

Owns the choice. Both are made from the log's batches and compared with the broker's files. Where
those differ they may still be right (an older broker, another `index.interval.bytes`, a restart
within the segment), which a second walk over the batches tells; where not, ours are stored.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from rlm.source.batch_headers import read_batch_headers
from rlm.source.log_file import LogFile
from rlm.source.log_source import LocalSegment
from rlm.source.partition_files import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    PartitionFiles,
    read_or_none,
)
from rsm.segment.batch import NO_TIMESTAMP
from rsm.segment.errors import CorruptError
from rsm.segment.index_builder import IndexBuilder, matches_log
from rsm.segment.indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetIndex, TimeIndex, cut_preallocated

_MIN_BATCH_BYTES = 26  # of magic 0; a batch has at most one entry in each index

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentIndexes:
    """Two indexes that agree with the log; `max_timestamp_ms` is -1 if no batch has a timestamp."""

    offset_index: OffsetIndex
    time_index: TimeIndex
    max_timestamp_ms: int


def read_segment_indexes(
    log: LogFile, files: PartitionFiles, segment: LocalSegment
) -> SegmentIndexes:
    """Read the segment's indexes, checked against the batches of its log.

    Raises CorruptError if the log's batches don't fill its file or leave the segment's offsets.
    """
    built = _build_indexes(log, segment)
    own = _read_own_indexes(log, files, segment)
    if own is not None and own[0] == built.offset_index and own[1] == built.time_index:
        return built
    if own is not None and _are_right(own, built, log):
        offset_index, time_index = own
        return SegmentIndexes(
            offset_index=offset_index,
            time_index=time_index,
            max_timestamp_ms=built.max_timestamp_ms,
        )
    _LOG.warning(
        "indexes do not agree with the log, made anew directory=%s base_offset=%d",
        files.directory,
        segment.offsets.start_offset,
    )
    return built


def _build_indexes(log: LogFile, segment: LocalSegment) -> SegmentIndexes:
    builder = IndexBuilder(base_offset=segment.offsets.start_offset)
    max_timestamp_ms = NO_TIMESTAMP
    next_offset = segment.offsets.start_offset
    for header in read_batch_headers(log.descriptor, log.length_bytes):
        builder.append(header)
        max_timestamp_ms = max(max_timestamp_ms, header.max_timestamp_ms)
        next_offset = header.next_offset
    if next_offset > segment.offsets.end_offset:
        raise CorruptError(
            "segment runs into the next one",
            expected=segment.offsets.end_offset,
            found=next_offset,
        )
    return SegmentIndexes(
        offset_index=builder.offset_index(),
        time_index=builder.time_index(),
        max_timestamp_ms=max_timestamp_ms,
    )


def _read_own_indexes(
    log: LogFile, files: PartitionFiles, segment: LocalSegment
) -> tuple[OffsetIndex, TimeIndex] | None:
    """The broker's files, cut to their true size; None if one is absent or no index at all."""
    max_entries = log.length_bytes // _MIN_BATCH_BYTES + 1
    contents: list[bytes] = []
    for suffix, entry in ((OFFSET_INDEX_SUFFIX, OFFSET_ENTRY), (TIME_INDEX_SUFFIX, TIME_ENTRY)):
        path = files.path(segment.offsets.start_offset, suffix)
        content = read_or_none(path, max_bytes=max_entries * entry.size)
        if content is None:
            return None
        contents.append(cut_preallocated(content, entry_bytes=entry.size))
    try:
        return (
            OffsetIndex.parse(
                contents[0], offsets=segment.offsets, log_bytes=max(log.length_bytes, 1)
            ),
            TimeIndex.parse(contents[1], offsets=segment.offsets),
        )
    except CorruptError:
        return None


def _are_right(own: tuple[OffsetIndex, TimeIndex], built: SegmentIndexes, log: LogFile) -> bool:
    """Whether the broker's indexes agree with the log and are no torso of what they have to be."""
    offset_index, time_index = own
    if len(offset_index) < len(built.offset_index) and built.offset_index.data.startswith(
        offset_index.data
    ):
        return False  # right as far as it goes, but of no use behind where it was cut
    return matches_log(
        offset_index, time_index, read_batch_headers(log.descriptor, log.length_bytes)
    )
