"""A store in one SQLite file: `rsm.config.storage.backend=rlm_example.storage:SqliteChunkStorage`.

It supports what segments need, but no changes of a chunk. Each request is one transaction, so a
finished request is durable, and a chunk is whole or absent. Do not use it in production: a chunk
must fit into memory.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NoReturn

from crc32c import crc32c

from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    UnsupportedError,
)
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage, Concat
from rsm.storage.names import check_name

_CAPABILITIES = Capabilities(
    can_append=False,
    can_truncate=False,
    concat=Concat.NONE,
    has_inline_attributes=True,
    has_stored_checksum=True,
)
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS chunk (name TEXT PRIMARY KEY, content BLOB NOT NULL, "
    "crc32c INTEGER NOT NULL, modified_ms INTEGER NOT NULL, attributes TEXT NOT NULL)"
)
_INFO = "SELECT name, length(content), modified_ms, crc32c, attributes FROM chunk"
_LISTED_AT_ONCE = 1000
_MAX_POSITION = 2**31 - 1  # SQLite's maximum


class SqliteChunkStorage(ChunkStorage):
    """Chunks in SQLite. Settings: `path` of the file; `timeout.ms` for a lock, 10000 by default."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        path = settings.get("path")
        if not path:
            raise InvalidConfigError("a setting is missing", setting="path")
        self._path = path
        self._timeout_s = int(settings.get("timeout.ms", "10000")) / 1000
        self._lock = threading.Lock()
        self._has_schema = False

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
        check_name(name)
        content = b"".join(bytes(view) for view in source.chunks())
        if source.length_bytes not in {None, len(content)}:
            raise CorruptError("the source's length differs from the announced length", name=name)
        checksum = crc32c(content)
        text = json.dumps(dict(attributes or {}))
        row = (name, content, checksum, time.time_ns() // 1_000_000, text)
        try:
            self._execute("INSERT INTO chunk VALUES (?, ?, ?, ?, ?)", row)
        except sqlite3.IntegrityError as error:
            raise AlreadyExistsError("the chunk already exists", name=name) from error
        return checksum

    def create(self, name: str) -> None:
        self.create_with_content(name, _Empty())

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        _refuse(name)

    def truncate(self, name: str, length_bytes: int) -> None:
        _refuse(name)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        _refuse(target)

    def exists(self, name: str) -> bool:
        check_name(name)
        return bool(self._execute("SELECT 1 FROM chunk WHERE name = ?", (name,)))

    def info(self, name: str) -> ChunkInfo:
        check_name(name)
        return _info(_only(name, self._execute(f"{_INFO} WHERE name = ?", (name,))))

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        check_name(name)
        start = min(positions.start_position + 1, _MAX_POSITION)  # SQL counts positions from 1
        length_bytes = min(len(positions), _MAX_POSITION)
        sql = "SELECT substr(content, ?, ?) FROM chunk WHERE name = ?"
        (content,) = _only(name, self._execute(sql, (start, length_bytes, name)))
        return bytes(content or b"")  # SQLite returns NULL for no bytes

    def delete(self, name: str) -> None:
        check_name(name)
        _only(name, self._execute("DELETE FROM chunk WHERE name = ? RETURNING name", (name,)))

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        sql = f"{_INFO} WHERE name > ? AND substr(name, 1, ?) = ? ORDER BY name LIMIT ?"
        while True:
            rows = self._execute(sql, (after, len(prefix), prefix, _LISTED_AT_ONCE))
            yield from map(_info, rows)
            if len(rows) < _LISTED_AT_ONCE:
                return
            after = str(rows[-1][0])

    def check_access(self) -> None:
        self._execute("SELECT 1 FROM chunk LIMIT 1", ())

    def close(self) -> None:
        """Do nothing: each request opens and closes its own connection."""

    def _execute(self, sql: str, values: Sequence[object]) -> Sequence[tuple[Any, ...]]:
        """Run one transaction. Raises RetriableError if the file is locked or cannot be used."""
        try:
            with closing(sqlite3.connect(self._path, timeout=self._timeout_s)) as connection:
                self._make_schema(connection)
                with connection:
                    return connection.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            raise RetriableError("cannot use the file", path=self._path, reason=error) from error

    def _make_schema(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._has_schema:
                with connection:
                    connection.execute(_SCHEMA)
                self._has_schema = True


class _Empty:
    """The content of an empty chunk."""

    length_bytes = 0

    def chunks(self) -> Iterator[memoryview]:
        return iter(())


def _refuse(name: str) -> NoReturn:
    raise UnsupportedError("this store cannot change a chunk", name=name)


def _only(name: str, rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    if not rows:
        raise NotFoundError("the object is not in the store", name=name)
    return rows[0]


def _info(row: tuple[Any, ...]) -> ChunkInfo:
    name, length_bytes, modified_ms, checksum, attributes = row
    return ChunkInfo(
        name=name,
        length_bytes=length_bytes,
        last_modified_ms=modified_ms,
        crc32c=checksum,
        attributes=json.loads(attributes),
    )
