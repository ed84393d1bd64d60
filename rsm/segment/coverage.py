"""Finds the stored offsets: the readable part of each finished segment, and the first hole.

A finished segment counts only as far as its leader epochs agree with the log's lineage (KIP-405).
The log no longer contains the rest: it was truncated after an election.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRange:
    """Represents a finished segment; `offsets` is the part in the lineage."""

    metadata: RemoteLogSegmentMetadata
    offsets: OffsetRange


def stored_ranges(
    lineage: Lineage, segments: Iterable[RemoteLogSegmentMetadata]
) -> tuple[StoredRange, ...]:
    """Return the readable parts of finished segments, if not empty, in order of start offset."""
    ranges = []
    for metadata in segments:
        if metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            continue
        epochs = metadata.segment_leader_epochs.entries
        start_offset = epochs[0].start_offset
        end_offset = lineage.common_end(epochs, metadata.offsets.end_offset)
        if start_offset < end_offset:
            offsets = OffsetRange(start_offset=start_offset, end_offset=end_offset)
            ranges.append(StoredRange(metadata=metadata, offsets=offsets))
    return tuple(sorted(ranges, key=lambda stored: stored.offsets))


def covered_end(
    ranges: Sequence[StoredRange], from_offset: int, *, gaps: Iterable[OffsetRange] = ()
) -> int:
    """Return the first offset >= `from_offset` that is neither in `ranges` nor in `gaps`."""
    end_offset = from_offset
    for offsets in sorted((*(stored.offsets for stored in ranges), *gaps)):
        if offsets.start_offset > end_offset:
            break
        end_offset = max(end_offset, offsets.end_offset)
    return end_offset


def stored_end(ranges: Sequence[StoredRange]) -> int | None:
    """Return the offset after the highest stored one; None if nothing is stored. Ignores holes."""
    return max((stored.offsets.end_offset for stored in ranges), default=None)


def log_bytes(ranges: Iterable[StoredRange]) -> int:
    """Return the size of the stored log; offsets in several segments count once.

    Of a segment that overlaps earlier ones, only the offsets above them count. The size of a part
    is estimated from its share of the segment's offsets.
    """
    total_bytes = end_offset = 0
    for stored in sorted(ranges, key=_widest_first):
        whole = stored.metadata.offsets
        added = stored.offsets.end_offset - max(stored.offsets.start_offset, end_offset)
        if added > 0:
            total_bytes += stored.metadata.segment_size_bytes * added // len(whole)
            end_offset = stored.offsets.end_offset
    return total_bytes


def _widest_first(stored: StoredRange) -> tuple[int, int]:
    return stored.offsets.start_offset, -stored.offsets.end_offset
