"""DiskChunks: pieces of stored objects in a directory of this host, within a budget of bytes.

A piece is a file named after what it is a piece of: its content, and behind it a checksum of both.
A file that is not what its name says is removed, and nobody gets it. Nothing is synced: after a
crash of the host a file may be anything, and is then found out. What an earlier process left is
taken over; files of other names are left alone. One process has the directory to itself.

Where the disk is full or broken nothing is written for a while, and reads go on without it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from crc32c import crc32c

from rsm.segment.clock import Clock
from rsm.segment.ranges import ByteRange

_log = logging.getLogger(__name__)

_CHECKSUM_BYTES = 4
_UNDER_WAY = ".new"
_OURS = re.compile(r"[0-9a-f]{64}-[0-9]+-[0-9]+(\.[0-9]+\.new)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskChunksSettings:
    """Where, how much, and for how long nothing is written after the disk failed."""

    directory: Path
    budget_bytes: int
    pause_ms: int = 60_000


class DiskResult(Enum):
    """What became of a request, or of the disk."""

    HIT = "hit"
    MISS = "miss"
    CORRUPT = "corrupt"
    DISK_FAILED = "disk_failed"


class DiskChunks:
    """Thread-safe. The least recently used go first.

    Memory: about 200 bytes for each piece. Raises nothing: a cache that fails is an empty one.
    """

    def __init__(
        self,
        settings: DiskChunksSettings,
        clock: Clock,
        observe: Callable[[DiskResult], None] = lambda _result: None,
    ) -> None:
        """`observe` is told of each result, by any thread."""
        self._observe = observe
        self._directory = settings.directory
        self._budget_bytes = settings.budget_bytes
        self._pause_ms = settings.pause_ms
        self._clock = clock
        self._resumes_at_ms = clock.monotonic_ms()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._held_bytes = 0
        self._lock = threading.Lock()
        try:
            self._take_over()
        except OSError as error:
            self._failed(error)

    def get(self, key: str, positions: ByteRange) -> bytes | None:
        """The bytes of the object `key` at `positions`, if they are here."""
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
                # One byte more than there should be tells a file that has grown.
                stored = file.read(len(positions) + _CHECKSUM_BYTES + 1)
        except OSError:
            stored = b""
        content = stored[:-_CHECKSUM_BYTES]
        intact = len(content) == len(positions) and stored.endswith(_checksum(name, content))
        self._observe(DiskResult.HIT if intact else DiskResult.CORRUPT)
        if intact:
            return content
        _log.warning("a cached chunk was damaged and is dropped key=%s", key)
        self._remove(name)
        return None

    def put(self, key: str, positions: ByteRange, content: bytes) -> None:
        """Keep the bytes of the object `key` at `positions`, if there is room and a disk."""
        size_bytes = len(content) + _CHECKSUM_BYTES
        if size_bytes > self._budget_bytes or self._clock.monotonic_ms() < self._resumes_at_ms:
            return
        name = _file_name(key, positions)
        self._make_room(size_bytes)
        # Of its own for each thread: two may keep the same piece at the same time.
        new = self._directory / f"{name}.{threading.get_ident()}{_UNDER_WAY}"
        try:
            with new.open("wb") as file:
                file.write(content)
                file.write(_checksum(name, content))
            new.replace(self._directory / name)
        except OSError as error:
            self._unlink(new.name)
            with self._lock:
                self._held_bytes -= size_bytes
            self._failed(error)
            return
        with self._lock:
            self._held_bytes -= self._sizes.pop(name, 0)
            self._sizes[name] = size_bytes

    def forget(self, key: str) -> None:
        """Keep nothing of the object `key`. Looks at all that is here: not for every day."""
        prefix = _object_name(key)
        with self._lock:
            names = [name for name in self._sizes if name.startswith(prefix)]
        for name in names:
            self._remove(name)

    @property
    def held_bytes(self) -> int:
        """How much is kept now."""
        with self._lock:
            return self._held_bytes

    def _take_over(self) -> None:
        """What is there already, the oldest first; more than the budget is removed."""
        self._directory.mkdir(parents=True, exist_ok=True)
        found = []
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if not _OURS.fullmatch(entry.name):
                    continue
                if entry.name.endswith(_UNDER_WAY):
                    self._unlink(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime_ns, entry.name, status.st_size))
        for _, name, size_bytes in sorted(found):
            self._sizes[name] = size_bytes
            self._held_bytes += size_bytes
        self._make_room(0)

    def _make_room(self, size_bytes: int) -> None:
        """Count so many bytes in, and remove those whose turn it is to go."""
        gone = []
        with self._lock:
            self._held_bytes += size_bytes
            while self._sizes and self._held_bytes > self._budget_bytes:
                old, old_bytes = self._sizes.popitem(last=False)
                self._held_bytes -= old_bytes
                gone.append(old)
        for name in gone:
            self._unlink(name)

    def _remove(self, name: str) -> None:
        with self._lock:
            self._held_bytes -= self._sizes.pop(name, 0)
        self._unlink(name)

    def _unlink(self, name: str) -> None:
        with suppress(OSError):
            (self._directory / name).unlink(missing_ok=True)

    def _failed(self, error: OSError) -> None:
        """Write nothing for a while, and give half of the room back: others may need it more."""
        with self._lock:
            self._resumes_at_ms = self._clock.monotonic_ms() + self._pause_ms
            half = [
                name for _, name in zip(range(len(self._sizes) // 2), self._sizes, strict=False)
            ]
        for name in half:
            self._remove(name)
        self._observe(DiskResult.DISK_FAILED)
        _log.warning("the disk cache failed and rests path=%s error=%s", self._directory, error)


def _object_name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _file_name(key: str, positions: ByteRange) -> str:
    return f"{_object_name(key)}-{positions.start_position}-{positions.end_position}"


def _checksum(name: str, content: bytes) -> bytes:
    """Of the content and of what it is, so that no file is taken for another."""
    return crc32c(name.encode(), crc32c(content)).to_bytes(_CHECKSUM_BYTES, "big")
