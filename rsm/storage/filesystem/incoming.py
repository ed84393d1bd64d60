"""Chunks under way: the files that a file store writes before they get their names.

They lie in one directory below the root, which no listing shows. A process that is killed leaves
its files there; whoever writes next removes those that nobody has written to for the time that is
set. That time is measured by the store's own stamps, so the clocks of its users need not agree.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from rsm.storage.filesystem.store_root import INCOMING, StoreRoot, sync_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingFile:
    """One open file of its writer; `inode` stays the same when it gets its name."""

    path: Path
    descriptor: int
    inode: int

    def write(self, data: memoryview | bytes) -> None:
        """Write all of `data` behind what was written before."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]

    def start_writeback(self, start_position: int, end_position: int) -> None:
        """Have the system begin to write these bytes to the disk; returns without waiting.

        A later sync then has little left to wait for. Nothing is lost where it is not supported.
        """
        if hasattr(os, "posix_fadvise"):  # not everywhere, and only an advice
            length_bytes = end_position - start_position
            # The one advice that begins a write-back. It also drops what is on the disk already
            # from the page cache, which the broker on this host has better use for.
            os.posix_fadvise(self.descriptor, start_position, length_bytes, os.POSIX_FADV_DONTNEED)


class Incoming:
    """The directory of files under way. Thread-safe; also between processes."""

    def __init__(self, root: StoreRoot, *, leftover_max_age_ms: int) -> None:
        self._root = root
        self._directory = root.path / INCOMING
        self._leftover_max_age_ns = leftover_max_age_ms * 1_000_000
        self._next_sweep_ns = 0
        self._lock = threading.Lock()

    @contextmanager
    def new_file(self, name: str) -> Iterator[IncomingFile]:
        """A new empty file for the chunk `name`, gone when the block ends but for its new name.

        Raises what StoreRoot.writing does, for the opening only.
        """
        with self._root.writing(name):
            self._root.verify()
            with suppress(FileExistsError):
                self._root.access.make_directory(self._directory)
            path = self._directory / uuid4().hex
            descriptor = self._root.access.create(path)
        status = os.fstat(descriptor)
        try:
            self._sweep(status.st_mtime_ns)
            yield IncomingFile(path=path, descriptor=descriptor, inode=status.st_ino)
        finally:
            # What cannot be removed now is a leftover, and no reason to fail.
            with suppress(OSError):
                os.close(descriptor)
            with suppress(OSError):
                self.attributes_path(status.st_ino).unlink(missing_ok=True)
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def attributes_path(self, inode: int) -> Path:
        """Where attributes lie between the moment their chunk appears and their own."""
        return self._directory / f"{inode}.attributes"

    def sync(self) -> None:
        """Make the entries durable."""
        sync_directory(self._directory)

    def _sweep(self, now_ns: int) -> None:
        """Remove what is too old to be under way, at most once in that time."""
        with self._lock:
            if now_ns < self._next_sweep_ns:
                return
            self._next_sweep_ns = now_ns + self._leftover_max_age_ns
        with suppress(OSError):  # the next sweep may do better
            for path in self._directory.iterdir():
                if path.suffix != ".attributes":
                    self._sweep_one(path, now_ns - self._leftover_max_age_ns)

    def _sweep_one(self, path: Path, oldest_ns: int) -> None:
        with suppress(FileNotFoundError):  # another process sweeps at the same time
            status = path.stat()
            if status.st_mtime_ns >= oldest_ns:
                return
            # A second name means that the chunk is there: its attributes may still be needed.
            if status.st_nlink == 1:
                self.attributes_path(status.st_ino).unlink(missing_ok=True)
            path.unlink()
