"""Opens the next batches of a log as a part of a segment that spans files.

rlm.source.logdir lists the directory and opens the log file. Then this module reads the
transactions, and checks that the file still has its name. A part has no indexes; `JoinedParts`
builds those of the whole segment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from rlm.facts.local_log import LogPosition
from rlm.source.batch_headers import BatchSpan, read_batch_spans
from rlm.source.log_file import LogFile
from rlm.source.log_source import NextBatches, OpenPart
from rlm.source.partition_files import PartitionFiles
from rlm.source.segment_transactions import read_segment_transactions
from rsm.segment.batches.joined_companions import JoinedCompanions
from rsm.segment.epochs import Lineage
from rsm.segment.errors import NotFoundError
from rsm.segment.local_segment import SegmentCompanions
from rsm.segment.ranges import OffsetRange


def next_batches(
    files: PartitionFiles, begin: LogPosition, end_offset: int, *, max_bytes: int
) -> NextBatches:
    """Find the file that contains the position's offset, and the range to read from it.

    Raises NotFoundError if no file contains the offset.
    """
    bases = files.log_base_offsets
    following = bisect_right(bases, begin.offset)
    if not following:
        raise NotFoundError(
            "cannot open the part: its first offset was deleted",
            directory=files.directory,
            offset=begin.offset,
        )
    base_offset = bases[following - 1]
    position = begin.position if begin.file_base_offset == base_offset else 0
    file_end = files.next_base_offset(base_offset)
    ends_file = file_end is not None and file_end <= end_offset
    return NextBatches(
        file_base_offset=base_offset,
        offsets=OffsetRange(
            start_offset=begin.offset,
            end_offset=file_end if ends_file and file_end is not None else end_offset,
        ),
        size_bytes=position,
        position=position,
        max_bytes=max_bytes,
        ends_file=ends_file,
    )


class OpenLogDirPart:
    """Represents an open part of a log in a log dir; see `OpenPart`. Does not own the log file."""

    def __init__(
        self, log: LogFile, files: PartitionFiles, wanted: NextBatches, begin: LogPosition
    ) -> None:
        """Read the part's transactions. Raises NotFoundError if the file was deleted meanwhile."""
        part = log.part
        self._files = files
        self._file = log
        transactions = read_segment_transactions(files, wanted.file_base_offset, part.offsets)
        if not log.is_in_place():
            raise NotFoundError(
                "cannot open the part: its log file was deleted meanwhile",
                directory=files.directory,
                offsets=wanted.offsets,
            )
        self.file_base_offset = wanted.file_base_offset
        is_same_file = begin.file_base_offset == wanted.file_base_offset
        self.first_entry_id = (begin.entry_id if is_same_file else 0) + part.skipped_count
        self.offsets = part.offsets
        self.log = log
        self.transaction_index = transactions.transaction_index
        self.aborted_transactions = transactions.aborted_transactions
        self.modified_ms = log.modified_ms
        self.following = LogPosition(
            offset=part.offsets.end_offset,
            file_base_offset=wanted.file_base_offset,
            position=part.positions.end_position,
            entry_id=self.first_entry_id + part.batch_count,
        )

    def headers(self) -> Iterator[BatchSpan]:
        positions = self._file.part.positions
        with self._file.blaming_writers():
            yield from read_batch_spans(
                self._file.descriptor,
                positions.end_position,
                start_position=positions.start_position,
            )

    def verify_unchanged(self) -> None:
        self._file.require_unwritten()


class JoinedParts:
    """Joins consecutive parts of a log into one segment, with its bounds and companions.

    Memory: that of `JoinedCompanions`. Not thread-safe.
    """

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._end_offset = base_offset
        self._size_bytes = 0
        self._joined = JoinedCompanions(base_offset)
        self._modified_ms = 0

    @property
    def offsets(self) -> OffsetRange:
        """Return the offsets of all parts."""
        return OffsetRange(start_offset=self._base_offset, end_offset=self._end_offset)

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def max_timestamp_ms(self) -> int:
        """Return the greatest timestamp; the last file's modification time if no batch has one."""
        found = self._joined.max_timestamp_ms
        return self._modified_ms if found is None else found

    def append(self, part: OpenPart) -> None:
        """Add the next part. Raises the errors of its headers."""
        self._joined.append_batches(part.headers())
        self._end_offset = part.offsets.end_offset
        self._size_bytes += part.log.length_bytes
        self._modified_ms = part.modified_ms
        self._joined.append_transactions(
            part.offsets, part.transaction_index, part.aborted_transactions
        )

    def companions(self, lineage: Lineage) -> SegmentCompanions:
        """Return the companions of the appended parts; omit the producer snapshot."""
        return self._joined.companions(lineage)
