"""Finds the whole batches in a part of a log file, to copy them as a segment or within one.

Decides where such a part begins and ends, in offsets and in the file. A part begins with the batch
that contains its first offset. In the active segment's file, it ends with the last whole batch
below its end offset, because the broker may be writing the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from rlm.facts.local_log import CommittedTail, LocalSegment
from rlm.source.batch_headers import read_batch_spans
from rlm.source.log_source import NextBatches
from rsm.segment.errors import RetriableError
from rsm.segment.ranges import ByteRange, OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """Represents a part of a file: `positions` contain the batches of `offsets`.

    `skipped_count` is how many batches the search skipped before the part, `batch_count` how many
    the part has. Both are 0 except for NextBatches.
    """

    offsets: OffsetRange
    positions: ByteRange
    skipped_count: int = 0
    batch_count: int = 0


def find_part(descriptor: int, size_bytes: int, segment: LocalSegment) -> FilePart:
    """Find the part of a file for a segment, from the batch headers up to the segment's end.

    Returns the whole file for a whole-file segment, or if a rolled file contains no batch of the
    segment. Raises CorruptError at invalid bytes, RetriableError if the file contains no whole
    batch of a committed tail or of NextBatches.
    """
    if isinstance(segment, NextBatches):
        return _next_batches(descriptor, size_bytes, segment)
    if isinstance(segment, CommittedTail):
        return _whole_batches(descriptor, size_bytes, segment.offsets)
    if not segment.is_whole_file:
        begin = _begin(descriptor, size_bytes, segment.offsets)
        if begin is not None:
            return _part(begin, segment.offsets.end_offset, size_bytes)
    begin = _BatchStart(offset=segment.file_base_offset, position=0)
    return _part(begin, segment.offsets.end_offset, size_bytes)


class _BatchStart(NamedTuple):
    offset: int
    position: int


def _begin(descriptor: int, size_bytes: int, wanted: OffsetRange) -> _BatchStart | None:
    """Find the batch at or after the wanted start; include missing offsets before it."""
    position = 0
    for span in read_batch_spans(descriptor, size_bytes):
        if span.last_offset >= wanted.start_offset:
            return _BatchStart(min(span.base_offset, wanted.start_offset), position)
        position += span.length_bytes
    return None


def _whole_batches(descriptor: int, size_bytes: int, wanted: OffsetRange) -> FilePart:
    """Find the whole batches of a tail; read nothing after its end, where a batch may be torn."""
    begin: _BatchStart | None = None
    position, end_offset = 0, wanted.start_offset
    for span in read_batch_spans(descriptor, size_bytes):
        if span.last_offset >= wanted.end_offset:
            break
        if begin is None and span.last_offset >= wanted.start_offset:
            begin = _BatchStart(min(span.base_offset, wanted.start_offset), position)
        position += span.length_bytes
        end_offset = span.last_offset + 1
        if end_offset == wanted.end_offset:
            break
    if begin is None:
        raise RetriableError("cannot copy the range: it contains no whole batch", offsets=wanted)
    return _part(begin, end_offset, position)


def _next_batches(descriptor: int, size_bytes: int, wanted: NextBatches) -> FilePart:
    """Find the whole batches at or after a position; read nothing after the end."""
    begin: _BatchStart | None = None
    position, end_offset = wanted.position, wanted.offsets.start_offset
    skipped_count = batch_count = 0
    for span in read_batch_spans(descriptor, size_bytes, start_position=position):
        if span.last_offset >= wanted.offsets.end_offset:
            break
        if begin is None:
            if span.last_offset < wanted.offsets.start_offset:
                skipped_count += 1
                position += span.length_bytes
                continue
            begin = _BatchStart(min(span.base_offset, end_offset), position)
        elif position + span.length_bytes - begin.position > wanted.max_bytes:
            break
        batch_count += 1
        position += span.length_bytes
        end_offset = span.last_offset + 1
        if end_offset == wanted.offsets.end_offset:
            break
    if wanted.ends_file and position == size_bytes:
        end_offset = wanted.offsets.end_offset
        begin = begin or _BatchStart(wanted.offsets.start_offset, position)
    if begin is None:
        raise RetriableError(
            "cannot copy the range: it contains no whole batch", offsets=wanted.offsets
        )
    found = _part(begin, end_offset, position)
    return replace(found, skipped_count=skipped_count, batch_count=batch_count)


def _part(begin: _BatchStart, end_offset: int, end_position: int) -> FilePart:
    return FilePart(
        offsets=OffsetRange(start_offset=begin.offset, end_offset=end_offset),
        positions=ByteRange(start_position=begin.position, end_position=end_position),
    )
