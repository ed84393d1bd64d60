"""Opens a segment's log file, or a part of one, and reads its content with all checks.

The file stays open by descriptor, so a rename or deletion by the broker (retention) does no harm. A
truncation and append by a follower may leave the inode and even the size unchanged; the file's
modification time and its batches show the change. The active segment's file grows. A copy reads
only committed data from it, which does not change while this broker leads. The copier confirms the
leadership.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rlm.facts.local_log import CommittedTail, LocalSegment
from rlm.source.batch_headers import read_batch_extents
from rlm.source.file_part import FilePart, find_part
from rlm.source.partition_files import DELETED_SUFFIX
from rsm.segment.batches.scanner import SegmentScanner
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, RetriableError

CHUNK_BYTES = 1 << 20

_UNREADABLE = "cannot read the segment"
_TRUNCATED = "cannot read the segment: it was truncated while it was read"
_WRITTEN = "cannot read the segment: it was written to while it was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """Represents properties of a file that change if a process writes to it or replaces it."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(
            device=status.st_dev,
            inode=status.st_ino,
            size_bytes=status.st_size,
            modified_ns=status.st_mtime_ns,
        )


class LogFile:
    """Represents an open log file. Close it after use, but not during a pass over its content.

    Each pass over the content allocates one buffer of `chunk_bytes`. The scanner also buffers at
    most one batch.
    """

    def __init__(
        self,
        path: Path,
        *,
        segment: LocalSegment,
        lineage: Lineage,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        """Open the file. Raises OSError if that fails.

        Raises RetriableError if the file's size differs from the listing; only a committed tail's
        file may have grown. Also raises the errors of `find_part`.
        """
        self._path = path
        self._segment = segment
        self._lineage = lineage
        self._chunk_bytes = chunk_bytes
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._identity = FileIdentity.of(os.fstat(self._descriptor))
            self._require_listed_size()
            with self.blaming_writers():
                self._part = find_part(self._descriptor, self._identity.size_bytes, segment)
        except BaseException:
            self.close()
            raise

    @property
    def part(self) -> FilePart:
        """Return the part of the file to read, which may be the whole file."""
        return self._part

    @property
    def descriptor(self) -> int:
        return self._descriptor

    @property
    def length_bytes(self) -> int:
        return len(self._part.positions)

    @property
    def modified_ms(self) -> int:
        return self._identity.modified_ns // 1_000_000

    def close(self) -> None:
        os.close(self._descriptor)

    def chunks(self) -> Iterator[memoryview]:
        """Read the content once from its start; see `rsm.segment.local_segment.ContentSource`.

        Yields the last view only after the whole content has passed every check.
        """
        scanner = SegmentScanner(base_offset=self._part.offsets.start_offset, lineage=self._lineage)
        buffer = memoryview(bytearray(min(self._chunk_bytes, max(self.length_bytes, 1))))
        position, end_position = (
            self._part.positions.start_position,
            self._part.positions.end_position,
        )
        while position < end_position:
            view = self._read(buffer[: end_position - position], position)
            position += len(view)
            with self.blaming_writers():
                scanner.feed(view)
                if position == end_position:
                    self._finish(scanner)
            yield view

    def batches(self) -> Iterator[tuple[int, int]]:
        """Yield the base offset and the length of each batch. Raises the errors of `chunks`."""
        with self.blaming_writers():
            yield from read_batch_extents(
                self._descriptor,
                self._part.positions.end_position,
                start_position=self._part.positions.start_position,
            )

    def require_unwritten(self) -> None:
        """Raise RetriableError if a process has written to the file since it was opened.

        For a committed tail, raises it only if the file is shorter than the part that was read.
        """
        if isinstance(self._segment, CommittedTail):
            if self._status().st_size < self._part.positions.end_position:
                raise self._changed(_TRUNCATED)
        elif not self._is_as_opened():
            raise self._changed(_WRITTEN)

    @contextmanager
    def blaming_writers(self) -> Iterator[None]:
        """Convert CorruptError to RetriableError if the file has changed since it was opened.

        Corrupt content does not prove a disk fault if the broker is rewriting it. Always converts
        OSError.
        """
        try:
            yield
        except OSError as error:
            raise self._changed(_UNREADABLE, reason=error) from error
        except CorruptError as error:
            if not self._is_as_opened():
                raise self._changed(_WRITTEN) from error
            raise

    def is_in_place(self) -> bool:
        """Return whether the file still has its name. Raises OSError if that is unknown."""
        return self._is_named(self._path)

    def is_being_deleted(self) -> bool:
        """Return whether the broker has renamed the file, to delete it after the delete delay."""
        return self._is_named(self._path.with_name(self._path.name + DELETED_SUFFIX))

    def _read(self, buffer: memoryview, position: int) -> memoryview:
        """Read at least one byte, up to a buffer's length, from `position`."""
        try:
            read_bytes = os.preadv(self._descriptor, [buffer], position)
        except OSError as error:
            raise self._changed(_UNREADABLE, reason=error) from error
        if not read_bytes:
            raise self._changed(_TRUNCATED)
        return buffer[:read_bytes]

    def _finish(self, scanner: SegmentScanner) -> None:
        self.require_unwritten()
        end_offset = scanner.finish().offsets.end_offset
        if end_offset > self._part.offsets.end_offset:
            raise CorruptError(
                "the segment is corrupt: its batches reach beyond the next segment's base offset",
                path=self._path,
                expected=self._part.offsets.end_offset,
                found=end_offset,
            )

    def _require_listed_size(self) -> None:
        size_bytes = self._identity.size_bytes
        may_have_grown = isinstance(self._segment, CommittedTail)
        listed_bytes = self._segment.size_bytes
        if size_bytes < listed_bytes or (size_bytes > listed_bytes and not may_have_grown):
            raise self._changed("cannot read the segment: it has changed since it was listed")

    def _is_as_opened(self) -> bool:
        return FileIdentity.of(self._status()) == self._identity

    def _status(self) -> os.stat_result:
        try:
            return os.fstat(self._descriptor)
        except OSError as error:
            raise self._changed(_UNREADABLE, reason=error) from error

    def _is_named(self, path: Path) -> bool:
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return (status.st_dev, status.st_ino) == (self._identity.device, self._identity.inode)

    def _changed(self, message: str, **context: object) -> RetriableError:
        return RetriableError(
            message, path=self._path, expected_bytes=self._segment.size_bytes, **context
        )
