"""Reads a segment's offset index and time index; rebuilds them if the broker's are wrong.

Builds both indexes from the log's batches and compares them with the broker's files. Files that
differ may still be correct, for example if an older broker wrote them, `index.interval.bytes`
changed, or the broker restarted within the segment. A second pass over the batches checks them. The
rebuilt indexes are stored if the files are wrong, or if only a part of a file is copied.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from rlm.facts.local_log import LocalSegment
from rlm.source.batch_headers import read_batch_spans
from rlm.source.log_file import LogFile
from rlm.source.partition_files import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    PartitionFiles,
    read_or_none,
)
from rsm.segment.batches.index_builder import IndexBuilder, matches_log
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetIndex, TimeIndex, cut_preallocated
from rsm.segment.log_line import LogLine

# The smallest batch, an empty message of magic 0, has this size. Each index has at most one entry
# for a batch.
_MIN_BATCH_BYTES = 26

_END_OF_TIME_MS = (1 << 63) - 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSegmentIndexes:
    """Represents two indexes that agree with the log."""

    offset_index: OffsetIndex
    time_index: TimeIndex

    @property
    def max_timestamp_ms(self) -> int:
        """Return the log's greatest timestamp, from the last entry; -1 if no batch has one."""
        return self.time_index.lookup(_END_OF_TIME_MS).timestamp_ms


def read_segment_indexes(
    log: LogFile, files: PartitionFiles, segment: LocalSegment
) -> LocalSegmentIndexes:
    """Read the segment's indexes, checked against the batches of its log.

    Raises CorruptError if the batches do not fill the file or exceed the segment's offsets,
    RetriableError if a process has written to the file meanwhile.
    """
    with log.blaming_writers():
        built = _build_indexes(log)
    if not segment.is_whole_file:
        return built
    own = _read_own_files(log, files, segment)
    if own == (built.offset_index.data, built.time_index.data):
        return built
    kept = _own_if_right(own, built, log, segment) if own is not None else None
    if kept is not None:
        return kept
    _log.warning(
        LogLine(
            "rebuilt indexes that were missing or did not agree with the log",
            directory=files.directory,
            base_offset=segment.offsets.start_offset,
        )
    )
    return built


def _build_indexes(log: LogFile) -> LocalSegmentIndexes:
    offsets, positions = log.part.offsets, log.part.positions
    builder = IndexBuilder(base_offset=offsets.start_offset)
    next_offset = offsets.start_offset
    for batch in read_batch_spans(
        log.descriptor, positions.end_position, start_position=positions.start_position
    ):
        builder.append(batch)
        next_offset = batch.last_offset + 1
    if next_offset > offsets.end_offset:
        raise CorruptError(
            "the segment is corrupt: its batches reach beyond its end offset",
            expected=offsets.end_offset,
            found=next_offset,
        )
    return LocalSegmentIndexes(offset_index=builder.offset_index(), time_index=builder.time_index())


def _read_own_files(
    log: LogFile, files: PartitionFiles, segment: LocalSegment
) -> tuple[bytes, bytes] | None:
    """Return the broker's two files without preallocated zeros; None if one is missing."""
    max_entries = log.length_bytes // _MIN_BATCH_BYTES + 1
    contents: list[bytes] = []
    for suffix, entry in ((OFFSET_INDEX_SUFFIX, OFFSET_ENTRY), (TIME_INDEX_SUFFIX, TIME_ENTRY)):
        path = files.path(segment.offsets.start_offset, suffix)
        content = read_or_none(path, max_bytes=max_entries * entry.size)
        if content is None:
            return None
        contents.append(cut_preallocated(content, entry_bytes=entry.size))
    return contents[0], contents[1]


def _own_if_right(
    own: tuple[bytes, bytes], built: LocalSegmentIndexes, log: LogFile, segment: LocalSegment
) -> LocalSegmentIndexes | None:
    """Return the broker's indexes; None if they do not agree with the log or are truncated."""
    offsets, log_bytes = segment.offsets, max(log.length_bytes, 1)
    if len(own[0]) < len(built.offset_index.data) and built.offset_index.data.startswith(own[0]):
        return None  # The index is correct, but entries at its end are missing.
    try:
        offset_index = OffsetIndex.parse(own[0], offsets=offsets, log_bytes=log_bytes)
        time_index = TimeIndex.parse(own[1], offsets=offsets)
    except CorruptError:
        return None
    if not matches_log(
        offset_index, time_index, read_batch_spans(log.descriptor, log.length_bytes)
    ):
        return None
    return LocalSegmentIndexes(offset_index=offset_index, time_index=time_index)
