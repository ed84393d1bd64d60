"""Creates incoming files: chunks that a file store writes before they get their names.

Listings skip the directory of these files, which is directly below the root. A killed process
leaves its files there, and the kernel unlocks them. A later writer removes a file that was not
written for the configured time, unless a writer may have it locked (rsm.storage.uploads.leftovers).
The file system's timestamps measure this time, so the clocks of the hosts need not agree.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from rsm.storage.filesystem.store_root import INCOMING, StoreRoot, sync_directory
from rsm.storage.uploads.leftovers import is_leftover


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingFile:
    """Represents a file that is open for its writer; its `inode` also identifies the chunk."""

    path: Path
    descriptor: int
    inode: int

    def write(self, data: memoryview | bytes) -> None:
        """Append all of `data`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]

    def start_writeback(self, start_position: int, end_position: int) -> None:
        """Start writing these bytes to the disk, without waiting.

        A later sync then takes less time. Does nothing if the system does not support it.
        """
        if hasattr(os, "posix_fadvise"):
            length_bytes = end_position - start_position
            # No other advice starts a write-back. This one also drops written pages from the page
            # cache, and so leaves more of the cache to the broker on this host.
            os.posix_fadvise(self.descriptor, start_position, length_bytes, os.POSIX_FADV_DONTNEED)


class Incoming:
    """Represents the directory of incoming files. Several threads and processes may share it."""

    def __init__(self, root: StoreRoot, *, leftover_max_age_ms: int) -> None:
        self._root = root
        self._directory = root.path / INCOMING
        self._leftover_max_age_ms = leftover_max_age_ms
        self._next_sweep_ns = 0
        self._lock = threading.Lock()

    @contextmanager
    def new_file(self, name: str) -> Iterator[IncomingFile]:
        """Create an empty file for the chunk `name`; the context removes its temporary name.

        Only the creation of the file raises the errors of StoreRoot.writing.
        """
        with self._root.writing(name):
            self._root.verify()
            with suppress(FileExistsError):
                self._root.access.make_directory(self._directory)
            path = self._directory / uuid4().hex
            descriptor = self._root.access.create(path)
        status = os.fstat(descriptor)
        # If the file system has no locks, the file's age alone decides its removal (leftovers.py).
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            self._sweep(status.st_mtime_ns)
            yield IncomingFile(path=path, descriptor=descriptor, inode=status.st_ino)
        finally:
            # A later sweep removes a file that cannot be removed now.
            with suppress(OSError):
                os.close(descriptor)
            with suppress(OSError):
                self.attributes_path(status.st_ino).unlink(missing_ok=True)
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def attributes_path(self, inode: int) -> Path:
        """Return the path of a chunk's attributes before they are linked next to the chunk."""
        return self._directory / f"{inode}.attributes"

    def sync(self) -> None:
        """Make the directory's entries durable."""
        sync_directory(self._directory)

    def _sweep(self, now_ns: int) -> None:
        """Remove leftovers older than their maximum age, if the last sweep was that long ago."""
        with self._lock:
            if now_ns < self._next_sweep_ns:
                return
            self._next_sweep_ns = now_ns + self._leftover_max_age_ms * 1_000_000
        with suppress(OSError):  # The next sweep tries again.
            for path in self._directory.iterdir():
                if path.suffix != ".attributes":
                    self._sweep_one(path, now_ns)

    def _sweep_one(self, path: Path, now_ns: int) -> None:
        with suppress(FileNotFoundError):  # Another process may sweep at the same time.
            status = path.stat()
            age_ms = (now_ns - status.st_mtime_ns) // 1_000_000
            if not is_leftover(
                age_ms, self._leftover_max_age_ms, may_have_writer=lambda: _may_be_locked(path)
            ):
                return
            # A second link means that the chunk exists and may need its attributes.
            if status.st_nlink == 1:
                self.attributes_path(status.st_ino).unlink(missing_ok=True)
            path.unlink()


def _may_be_locked(path: Path) -> bool:
    """Return whether a writer has the file locked; True also if that cannot be determined."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
