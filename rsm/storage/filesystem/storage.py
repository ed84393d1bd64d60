"""Implements ChunkStorage in a directory of a POSIX file system: a chunk's name is its path.

A creation writes an incoming file (rsm.storage.filesystem.incoming), syncs it, links it to its name
(a link never replaces another file), and syncs the directories above. After a crash the chunk is
either absent or complete. The file system must support hard links. The store keeps no checksums. A
deletion also removes the directories that become empty.

Memory during a call: one piece of the source, the range being read, and pages of
rsm.storage.filesystem.file_listing.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG

from crc32c import crc32c

from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
)
from rsm.segment.local_segment import ContentSource, acknowledge
from rsm.segment.ranges import ByteRange
from rsm.storage.changes import join_by_appending, require_as_long, require_at_end
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage, Concat
from rsm.storage.filesystem.file_access import DEFAULT_ACCESS, FileAccess
from rsm.storage.filesystem.file_listing import ordered_files
from rsm.storage.filesystem.file_naming import FileNaming
from rsm.storage.filesystem.incoming import Incoming, IncomingFile
from rsm.storage.filesystem.sidecar import is_sidecar, read_attributes, sidecar_path
from rsm.storage.filesystem.store_root import StoreRoot
from rsm.storage.uploads.leftovers import IDLE_MAX_AGE_MS

_CAPABILITIES = Capabilities(
    can_append=True,
    can_truncate=True,
    concat=Concat.BY_COPY,
    has_inline_attributes=False,
    has_stored_checksum=False,
)

# The disk writes a piece of this size while the next piece is read and checked. So a copy of
# segments of 64 MiB is as fast as a plain copy of the files; otherwise it is half as fast.
_WRITE_BACK_BYTES = 8 << 20


class FilesystemChunkStorage(ChunkStorage):
    """Stores chunks below `root`. Thread-safe. Raises InvalidConfigError if `root` does not exist.

    Removes dead writers' incoming files that are older than `leftover_max_age_ms`
    (rsm.storage.uploads.leftovers). Several processes may share a root.
    """

    def __init__(
        self,
        root: Path,
        *,
        access: FileAccess = DEFAULT_ACCESS,
        leftover_max_age_ms: int = IDLE_MAX_AGE_MS,
    ) -> None:
        self._root = StoreRoot(root, access)
        self._incoming = Incoming(self._root, leftover_max_age_ms=leftover_max_age_ms)
        self._naming = FileNaming(self._root, self._incoming)

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        path = self._root.locate(name)
        with self._root.writing(name):
            self._naming.check_free(path, name)
        with self._incoming.new_file(name) as file:
            checksum = self._fill(file, source, name)
            with self._root.writing(name):
                if attributes:
                    self._naming.prepare_attributes(file, attributes)
                self._naming.publish(file, path, name)
        return checksum

    def create(self, name: str) -> None:
        path = self._root.locate(name)
        with self._incoming.new_file(name) as file, self._root.writing(name):
            os.fsync(file.descriptor)
            self._naming.publish(file, path, name)

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        with self._open(name, os.O_WRONLY) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            length_bytes = os.fstat(descriptor).st_size
            require_at_end(name, offset_bytes=offset_bytes, length_bytes=length_bytes)
            _append_all(descriptor, data, start_position=offset_bytes)

    def truncate(self, name: str, length_bytes: int) -> None:
        with self._open(name, os.O_WRONLY) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            current_bytes = os.fstat(descriptor).st_size
            require_as_long(name, wanted_bytes=length_bytes, length_bytes=current_bytes)
            os.ftruncate(descriptor, length_bytes)
            os.fsync(descriptor)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        join_by_appending(self, target, sources, lambda name: self._status(name)[1].st_size)

    def exists(self, name: str) -> bool:
        try:
            self._status(name)
        except NotFoundError:
            return False
        return True

    def info(self, name: str) -> ChunkInfo:
        path, status = self._status(name)
        with self._root.reading(name):
            attributes = read_attributes(
                sidecar_path(path), self._incoming.attributes_path(status.st_ino)
            )
        return _info(name, status, attributes)

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        with self._open(name, os.O_RDONLY) as descriptor:
            end = min(positions.end_position, os.fstat(descriptor).st_size)
            return _read_all(descriptor, positions.start_position, end)

    def read_range_into(self, name: str, positions: ByteRange, target: memoryview) -> int:
        read_bytes = 0
        with self._open(name, os.O_RDONLY) as descriptor:
            while read_bytes < len(positions):
                rest = target[read_bytes : len(positions)]
                count = os.preadv(descriptor, [rest], positions.start_position + read_bytes)
                if not count:
                    break
                read_bytes += count
        return read_bytes

    def delete(self, name: str) -> None:
        path, status = self._status(name)
        with self._root.reading(name):
            self._naming.remove(path, status.st_ino)
            self._root.sync_parents(path)
            self._root.remove_empty_parents(path)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        self._root.verify()
        try:
            for name in ordered_files(self._root.path, prefix=prefix, after=after):
                info = self._listed(name)
                if info is not None:
                    yield info
        except OSError as error:
            raise RetriableError(
                "cannot list the file store", prefix=prefix, reason=error.strerror
            ) from error
        # A listing also ends without an error if the root disappears.
        self._root.verify()

    def check_access(self) -> None:
        self._root.verify()
        if not os.access(self._root.path, os.R_OK | os.W_OK | os.X_OK):
            raise InvalidConfigError(
                "cannot access the store's root: this user lacks a permission",
                root=self._root.path,
                advice="Give the user read, write and search permission on the root",
            )

    def close(self) -> None:
        return None

    def _fill(self, file: IncomingFile, source: ContentSource, name: str) -> int:
        """Write one pass of `source`, durably; return its CRC32C.

        Errors of the source pass through unchanged: the store did not fail.
        """
        checksum = 0
        written_bytes = 0
        handed_on_bytes = 0
        for view in source.chunks():
            checksum = crc32c(view, checksum)
            written_bytes += len(view)
            with self._root.writing(name):
                file.write(view)
                if written_bytes - handed_on_bytes >= _WRITE_BACK_BYTES:
                    file.start_writeback(handed_on_bytes, written_bytes)
                    handed_on_bytes = written_bytes
            acknowledge(source, len(view))
        if source.length_bytes not in (None, written_bytes):
            raise CorruptError(
                "the source's length differs from the announced length",
                name=name,
                announced_bytes=source.length_bytes,
                yielded_bytes=written_bytes,
            )
        with self._root.writing(name):
            os.fsync(file.descriptor)
        return checksum

    def _status(self, name: str) -> tuple[Path, os.stat_result]:
        """Return a chunk's path and status. Raises NotFoundError if it does not exist."""
        path = self._root.locate(name)
        with self._root.reading(name):
            status = path.lstat()
            if not S_ISREG(status.st_mode) or is_sidecar(path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return path, status

    @contextmanager
    def _open(self, name: str, flags: int) -> Iterator[int]:
        path, _ = self._status(name)
        with self._root.reading(name):
            descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def _listed(self, name: str) -> ChunkInfo | None:
        """Return one entry of a listing; None if it is not a chunk or no longer exists."""
        path = self._root.path / name
        try:
            return None if is_sidecar(path) else _info(name, path.lstat(), {})
        except (FileNotFoundError, NotADirectoryError):
            return None


def _info(name: str, status: os.stat_result, attributes: Mapping[str, str]) -> ChunkInfo:
    return ChunkInfo(
        name=name,
        length_bytes=status.st_size,
        last_modified_ms=status.st_mtime_ns // 1_000_000,
        attributes=attributes,
    )


def _read_all(descriptor: int, start_position: int, end_position: int) -> bytes:
    """Return the bytes at the positions, fewer only at the file's end."""
    pieces = []
    while start_position < end_position:
        piece = os.pread(descriptor, end_position - start_position, start_position)
        if not piece:
            break
        pieces.append(piece)
        start_position += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _append_all(descriptor: int, data: bytes | memoryview, *, start_position: int) -> None:
    """Append all of `data` durably. After a failure, restores the old length if possible."""
    rest = memoryview(data).cast("B")
    position = start_position
    try:
        while rest:
            written_bytes = os.pwrite(descriptor, rest, position)
            position += written_bytes
            rest = rest[written_bytes:]
        os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, start_position)
        raise
