"""Implements ChunkStorage in a directory of HDFS: the chunk's name is the path of its file.

A creation writes an incoming file below `.incoming` and requests that DataNodes sync its closed
blocks. It then sets the attributes and renames the file; a rename never replaces another file. A
killed process leaves its incoming file, and HDFS closes it. A later writer removes it
(rsm.storage.uploads.leftovers). HDFS keeps no CRC32C of the chunk.

**Corrupt chunks:** HDFS does not check the offset of an append. Two writers that append to the same
chunk, or join chunks to it, can write at wrong positions.

Memory: one piece of the source, twice the range being read, and pages of listings.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from uuid import uuid4

from crc32c import crc32c

from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.local_segment import BytesSource, ContentSource, acknowledge
from rsm.segment.ranges import ByteRange
from rsm.storage.broken_reads import ReadLimits, read_on
from rsm.storage.changes import join_by_appending, require_as_long, require_at_end
from rsm.storage.chunk_storage import (
    Capabilities,
    ChunkInfo,
    ChunkStorage,
    Concat,
    RequestObserver,
    ignore_request,
)
from rsm.storage.hdfs.directory import HdfsDirectory
from rsm.storage.hdfs.errors import ABSENT
from rsm.storage.hdfs.listing import Entry, ordered_files
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.hdfs.webhdfs import Body, RemoteError, WebHdfs
from rsm.storage.uploads.leftovers import is_leftover

_CAPABILITIES = Capabilities(
    can_append=True,
    can_truncate=True,
    concat=Concat.BY_COPY,
    has_inline_attributes=False,
    has_stored_checksum=False,
)
_MAX_OPENINGS = 3  # If responses break off, a range takes at most this number of requests.

# An attempt fails when another caller removes the empty directory before the rename.
_RENAME_ATTEMPTS = 16


class HdfsChunkStorage(ChunkStorage):
    """Stores chunks below the root of `settings`. Thread-safe. Opening sends no request."""

    def __init__(
        self, settings: HdfsSettings, *, observe: RequestObserver = ignore_request
    ) -> None:
        self._web = WebHdfs(settings, observe=observe)
        self._directory = HdfsDirectory(self._web, settings)
        self._leftover_max_age_ms = settings.leftover_max_age_ms
        self._timeout_ms = settings.timeout_ms
        self._read_limits = ReadLimits(max_openings=_MAX_OPENINGS, timeout_ms=settings.timeout_ms)
        self._next_sweep_s = time.monotonic()
        self._lock = threading.Lock()

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
        path = self._directory.path(name)
        if self.exists(name):  # This also checks that the root exists.
            raise AlreadyExistsError("the chunk already exists", name=name)
        content = _CheckedContent(source, name)
        incoming = self._directory.incoming_path(uuid4().hex)
        try:
            with self._directory.writing(name):
                self._write(incoming, content)
                if attributes:
                    self._directory.set_attributes(incoming, attributes)
                self._rename(incoming, path)
        except BaseException:
            self._directory.remove_quietly(incoming)
            raise
        self._sweep(name)
        return content.checksum

    def create(self, name: str) -> None:
        self.create_with_content(name, BytesSource(content=b""))

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        length_bytes = self._length_of(name)
        require_at_end(name, offset_bytes=offset_bytes, length_bytes=length_bytes)
        body = Body(length_bytes=len(data), pieces=(bytes(data),))
        with self._directory.reading(name):
            self._web.send("POST", self._directory.path(name), "APPEND", body)

    def truncate(self, name: str, length_bytes: int) -> None:
        current_bytes = self._length_of(name)
        require_as_long(name, wanted_bytes=length_bytes, length_bytes=current_bytes)
        if length_bytes < current_bytes:
            with self._directory.reading(name):
                path = self._directory.path(name)
                self._web.ask("POST", path, "TRUNCATE", newlength=length_bytes)
            self._directory.await_closed(name, self._timeout_ms)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        join_by_appending(self, target, sources, self._length_of)

    def exists(self, name: str) -> bool:
        try:
            self._directory.status(name)
        except NotFoundError:
            return False
        return True

    def info(self, name: str) -> ChunkInfo:
        status = self._directory.status(name)
        return ChunkInfo(
            name=name,
            length_bytes=status["length"],
            last_modified_ms=status["modificationTime"],
            attributes=self._directory.attributes(name),
        )

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        path = self._directory.path(name)
        if not len(positions):
            self._directory.status(name)
            return b""
        try:
            with self._directory.reading(name):
                return read_on(
                    lambda left, _version: self._web.read(path, left), positions, self._read_limits
                )
        except RetriableError:
            # HDFS refuses a read that begins at or after a file's end.
            if self._length_of(name) <= positions.start_position:
                return b""
            raise

    def delete(self, name: str) -> None:
        self._directory.status(name)
        with self._directory.reading(name):
            path = self._directory.path(name)
            response = self._web.ask("DELETE", path, "DELETE", recursive="false")
        if not response.get("boolean"):
            raise NotFoundError("the object is not in the store", name=name)
        self._directory.remove_empty_parents(name)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        for name, entry in ordered_files(self._directory.entries, prefix=prefix, after=after):
            yield ChunkInfo(
                name=name,
                length_bytes=entry.length_bytes,
                last_modified_ms=entry.last_modified_ms,
            )

    def check_access(self) -> None:
        self._directory.check_access()

    def close(self) -> None:
        return None

    def _write(self, path: str, content: _CheckedContent) -> None:
        body = Body(length_bytes=content.length_bytes, pieces=content.pieces())
        flags = {"overwrite": "false", "createflag": "CREATE,SYNC_BLOCK"}
        self._web.send("PUT", path, "CREATE", body, **flags)

    def _rename(self, source: str, path: str) -> None:
        """Rename a file. Raises RemoteError, also if the name exists."""
        parent = path.rpartition("/")[0] or "/"
        for attempt in range(_RENAME_ATTEMPTS):
            try:
                # Only with `renameoptions` does RENAME fail if the name exists.
                self._web.ask("PUT", source, "RENAME", destination=path, renameoptions="NONE")
            except RemoteError as error:
                if error.name not in ABSENT or attempt + 1 == _RENAME_ATTEMPTS:
                    raise
                self._web.ask("PUT", parent, "MKDIRS")
            else:
                return

    def _length_of(self, name: str) -> int:
        length_bytes: int = self._directory.status(name)["length"]
        return length_bytes

    def _sweep(self, written: str) -> None:
        """Remove leftovers older than their maximum age, if the last sweep was that long ago.

        The modification time of the new chunk `written` is the current time of HDFS.
        """
        with self._lock:
            if time.monotonic() < self._next_sweep_s:
                return
            self._next_sweep_s = time.monotonic() + self._leftover_max_age_ms / 1000
        try:
            now_ms = self._directory.status(written)["modificationTime"]
            for entry in self._directory.entries(".incoming/"):
                self._sweep_one(entry, now_ms)
        except TieredStorageError:  # The chunk exists, and the next sweep tries again.
            return

    def _sweep_one(self, entry: Entry, now_ms: int) -> None:
        path = self._directory.incoming_path(entry.name)
        oldest_ms = now_ms - self._leftover_max_age_ms
        if is_leftover(
            now_ms - entry.last_modified_ms,
            self._leftover_max_age_ms,
            may_have_writer=lambda: not self._directory.is_idle(path, since_ms=oldest_ms),
        ):
            self._directory.remove_quietly(path)


class _CheckedContent:
    """Represents one pass over a source. Checks the announced length."""

    def __init__(self, source: ContentSource, name: str) -> None:
        self._source = source
        self._name = name
        self.length_bytes = source.length_bytes
        self.checksum = 0

    def pieces(self) -> Iterator[memoryview]:
        sent_bytes = 0
        for view in self._source.chunks():
            sent_bytes += len(view)
            if self.length_bytes is not None and sent_bytes > self.length_bytes:
                raise self._other_length()
            self.checksum = crc32c(view, self.checksum)
            yield view
            acknowledge(self._source, len(view))
        if self.length_bytes not in (None, sent_bytes):
            raise self._other_length()

    def _other_length(self) -> CorruptError:
        return CorruptError(
            "the source's length differs from the announced length",
            name=self._name,
            announced_bytes=self.length_bytes,
        )
