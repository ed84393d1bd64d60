"""Caches pieces of stored objects in a directory of this host, within a budget of bytes.

Each piece is a file, named by the SHA-256 of the object's key and the positions of the piece.

    content | the object's key, UTF-8 | length of the key, 2 bytes | CRC32C of content, key, name

The cache removes a file whose checksum does not match its content and name, and never returns its
content. It does not sync files: the checksum detects files that a crash of the host damaged. The
cache takes over the files of an earlier process, except those of version 0.1.0, which do not
contain the object's key. It ignores files with other names. Only one process may use the directory;
the directory's group may read it.

If the cache cannot write a file or take over the directory, it removes half of its pieces and
writes nothing for a while. It still serves the other pieces.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from crc32c import crc32c

from rsm.segment.clock import Clock
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import ByteRange

_log = logging.getLogger(__name__)

_CHECKSUM_BYTES = 4
_TAIL = struct.Struct(">HI")  # length of the key, checksum
_HASH_CHARACTERS = 64
_UNDER_WAY = ".new"
_OURS = re.compile(r"[0-9a-f]{64}-([0-9]+)-([0-9]+)(\.[0-9]+\.new)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskChunksSettings:
    """The directory, its budget, and how long writes pause after a failure of the disk."""

    directory: Path
    budget_bytes: int
    pause_ms: int = 60_000


class DiskResult(Enum):
    """The result of a lookup, or DISK_FAILED for a failed write or takeover.

    CORRUPT includes a file that could not be read.
    """

    HIT = "hit"
    MISS = "miss"
    CORRUPT = "corrupt"
    DISK_FAILED = "disk_failed"


class DiskChunks:
    """A cache of pieces, which evicts the least recently used one. Thread-safe.

    Memory: about 300 bytes for each piece, and the same for each object. Raises no disk
    errors: `get` returns None for a piece that it cannot read.
    """

    def __init__(
        self,
        settings: DiskChunksSettings,
        clock: Clock,
        observe: Callable[[DiskResult], None] = lambda _result: None,
    ) -> None:
        """Open the cache, which calls `observe` with each result on the calling thread."""
        self._observe = observe
        self._directory = settings.directory
        self._budget_bytes = settings.budget_bytes
        self._pause_ms = settings.pause_ms
        self._clock = clock
        self._resumes_at_ms = clock.monotonic_ms()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        # This maps the hash of an object's key to the names of its pieces.
        self._names: dict[str, set[str]] = {}
        # This maps hashes to keys; the keys of an earlier process's files are unknown at first.
        self._keys: dict[str, str] = {}
        self._buffered_bytes = 0
        self._lock = threading.Lock()
        try:
            self._take_over()
        except OSError as error:
            self._pause_writes(error)

    def get(self, key: str, positions: ByteRange) -> bytes | None:
        """Return the bytes of the object `key` at `positions`; None if they are not cached."""
        name = _file_name(key, positions)
        with self._lock:
            is_here = name in self._sizes
            if is_here:
                self._sizes.move_to_end(name)
        if not is_here:
            self._observe(DiskResult.MISS)
            return None
        try:
            with (self._directory / name).open("rb") as file:
                content = file.read(len(positions))
                # One byte more than expected detects a file that is too long.
                tail = file.read(len(_tail(name, key, b"")) + 1)
        except OSError:
            content = tail = b""
        intact = len(content) == len(positions) and tail == _tail(name, key, content)
        self._observe(DiskResult.HIT if intact else DiskResult.CORRUPT)
        if intact:
            return content
        _log.warning(LogLine("dropped a damaged or unreadable chunk from the disk cache", key=key))
        self._remove(name)
        return None

    def put(self, key: str, positions: ByteRange, content: bytes) -> None:
        """Cache the bytes of the object `key` at `positions`, unless writes are paused.

        Ignores a piece that is larger than the budget.
        """
        name = _file_name(key, positions)
        tail = _tail(name, key, content)
        size_bytes = len(content) + len(tail)
        if size_bytes > self._budget_bytes or self._clock.monotonic_ms() < self._resumes_at_ms:
            return
        self._make_room(size_bytes)
        # Each thread writes a separate file, because two threads may cache the same piece at once.
        new = self._directory / f"{name}.{threading.get_ident()}{_UNDER_WAY}"
        try:
            with open(new, "wb", opener=_create) as file:
                file.write(content)
                file.write(tail)
            new.replace(self._directory / name)
        except OSError as error:
            self._unlink(new.name)
            with self._lock:
                self._buffered_bytes -= size_bytes
            self._pause_writes(error)
            return
        with self._lock:
            self._buffered_bytes -= self._drop(name)
            self._add(name, size_bytes)
            self._keys[_hash_in(name)] = key

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all objects of which a piece is cached.

        Reads the keys of an earlier process from its files, one file for each object; removes a
        file whose key is unreadable or does not match its name.
        """
        with self._lock:
            unknown = [name for name in self._sizes if _hash_in(name) not in self._keys]
        for name in unknown:
            self._learn_key(name)
        with self._lock:
            return tuple(self._keys.values())

    def forget(self, key: str) -> None:
        """Drop all pieces of the object `key`; a read that has opened its file still succeeds."""
        with self._lock:
            names = tuple(self._names.get(_object_name(key), ()))
        for name in names:
            self._remove(name)

    @property
    def buffered_bytes(self) -> int:
        """Return the total size of all files, including those that are being written."""
        with self._lock:
            return self._buffered_bytes

    def _take_over(self) -> None:
        """Take over existing files; remove the oldest ones until the rest fits the budget."""
        self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        # Version 0.1.0 let all users of the host read the directory.
        with suppress(OSError):
            self._directory.chmod(self._directory.stat().st_mode & 0o770)
        found = []
        with os.scandir(self._directory) as entries:
            for entry in entries:
                match = _OURS.fullmatch(entry.name)
                if match is None or not entry.is_file(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(_UNDER_WAY) or _names_no_object(match, status.st_size):
                    self._unlink(entry.name)
                else:
                    found.append((status.st_mtime_ns, entry.name, status.st_size))
        for _, name, size_bytes in sorted(found):
            self._add(name, size_bytes)
            self._buffered_bytes += size_bytes
        self._make_room(0)

    def _make_room(self, size_bytes: int) -> None:
        """Reserve `size_bytes`; remove the least recently used pieces that exceed the budget."""
        gone = []
        with self._lock:
            self._buffered_bytes += size_bytes
            while self._sizes and self._buffered_bytes > self._budget_bytes:
                old = next(iter(self._sizes))
                self._buffered_bytes -= self._drop(old)
                gone.append(old)
        for name in gone:
            self._unlink(name)

    def _remove(self, name: str) -> None:
        with self._lock:
            self._buffered_bytes -= self._drop(name)
        self._unlink(name)

    def _add(self, name: str, size_bytes: int) -> None:
        self._sizes[name] = size_bytes
        self._names.setdefault(_hash_in(name), set()).add(name)

    def _drop(self, name: str) -> int:
        """Remove a piece from the tables; return its size, or 0 if it is unknown."""
        size_bytes = self._sizes.pop(name, 0)
        names = self._names.get(_hash_in(name), set())
        names.discard(name)
        if not names:
            self._names.pop(_hash_in(name), None)
            self._keys.pop(_hash_in(name), None)
        return size_bytes

    def _learn_key(self, name: str) -> None:
        """Read the object's key from the file of a piece, unless the key is known."""
        with self._lock:
            if _hash_in(name) in self._keys or name not in self._sizes:
                return
        key = _key_in(self._directory / name)
        if key is None or _object_name(key) != _hash_in(name):
            self._remove(name)
            return
        with self._lock:
            if name in self._sizes:
                self._keys[_hash_in(name)] = key

    def _unlink(self, name: str) -> None:
        with suppress(OSError):
            (self._directory / name).unlink(missing_ok=True)

    def _pause_writes(self, error: OSError) -> None:
        """Pause writes and remove half of the pieces, because the disk may be full."""
        with self._lock:
            self._resumes_at_ms = self._clock.monotonic_ms() + self._pause_ms
            half = [
                name for _, name in zip(range(len(self._sizes) // 2), self._sizes, strict=False)
            ]
        for name in half:
            self._remove(name)
        self._observe(DiskResult.DISK_FAILED)
        _log.warning(
            LogLine(
                "the disk cache failed: removed half of its chunks and paused writes",
                path=self._directory,
                pause_ms=self._pause_ms,
                error=error,
            )
        )


def remove_chunks(directory: Path) -> None:
    """Remove a cache's files from its directory, and the directory if it is empty then.

    Ignores errors of the disk.
    """
    with suppress(OSError):
        for path in directory.iterdir():
            if _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
        directory.rmdir()


def _object_name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _file_name(key: str, positions: ByteRange) -> str:
    return f"{_object_name(key)}-{positions.start_position}-{positions.end_position}"


def _create(path: str, flags: int) -> int:
    return os.open(path, flags, 0o640)


def _hash_in(name: str) -> str:
    return name[:_HASH_CHARACTERS]


def _tail(name: str, key: str, content: bytes) -> bytes:
    """Encode the bytes after the content; the checksum covers the name, to detect a rename."""
    key_bytes = key.encode("utf-8", "surrogatepass")
    checksum = crc32c(name.encode(), crc32c(key_bytes, crc32c(content)))
    return key_bytes + _TAIL.pack(len(key_bytes), checksum)


def _key_in(path: Path) -> str | None:
    """Return the object's key in a file, without a check of the checksum; None if unreadable."""
    try:
        with path.open("rb") as file:
            file.seek(-_TAIL.size, os.SEEK_END)
            key_bytes, _ = _TAIL.unpack(file.read(_TAIL.size))
            file.seek(-_TAIL.size - key_bytes, os.SEEK_END)
            return file.read(key_bytes).decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError, struct.error):
        return None


def _names_no_object(match: re.Match[str], size_bytes: int) -> bool:
    """Return whether a file has only content and checksum, as version 0.1.0 wrote it."""
    return size_bytes == int(match[2]) - int(match[1]) + _CHECKSUM_BYTES
