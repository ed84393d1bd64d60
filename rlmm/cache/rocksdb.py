"""Implements OrderedStore in RocksDB, with one column family per table.

The metadata topic contains all data. So if RocksDB reports that a directory is corrupt, this module
removes the directory and creates it again. It does not change a locked directory, or one that the
disk cannot read; `reopen` tries again. If a call finds damage at run time, the database fails
until it is opened again. The call also leaves a mark, so that the next opening, by any process,
starts with an empty directory. After a failed write, RocksDB rejects all writes until the directory
is opened again, even if the disk has space again.

Memory: the block cache and the write buffers (both are settings), and about 1 MiB for open files
and indexes. The block cache contains the index and filter blocks.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType

from rocksdict import (
    Cache,
    ColumnFamily,
    DbClosedError,
    Rdict,
    RdictIter,
    WriteBatch,
    WriteBufferManager,
)

from rlmm.cache.ordered_store import (
    OrderedStore,
    StoreBatch,
    StoreReader,
    StoreSize,
    Table,
)
from rlmm.cache.rocksdb_options import (
    RocksDbSettings,
    database_options,
    merge_options,
    table_options,
)
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_DAMAGE_MARK = "DAMAGED"
_ALL_KEYS_END = b"\xff" * 128
_CORRUPT_PHRASES = (
    "Corruption",
    "No such file or directory",
    "No such column family",
    "Column families not opened",  # A version with other tables wrote the database.
)
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class _RocksDbBatch(StoreBatch):
    def __init__(self, handles: dict[Table, ColumnFamily]) -> None:
        self.changes = WriteBatch(raw_mode=True)
        self._handles = handles

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self.changes.put(key, value, self._handles[table])

    def delete(self, table: Table, key: bytes) -> None:
        self.changes.delete(key, self._handles[table])

    def delete_range(self, table: Table, start: bytes, end: bytes) -> None:
        self.changes.delete_range(start, end, self._handles[table])

    def clear_tables(self) -> None:
        self.changes.clear()
        for handle in self._handles.values():
            self.changes.delete_range(b"", _ALL_KEYS_END, handle)


class _ErrorMap:
    """Represents a context that converts RocksDB's errors to those of OrderedStore. Thread-safe.

    `damage` is the last damage found since the directory was last emptied; "" if there was none.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.damage = ""

    def __enter__(self) -> None:
        """Do nothing on entry."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, TieredStorageError):
            raise self.mapped_error(error) from error

    def mapped_error(self, error: Exception) -> TieredStorageError:
        """Return the error to raise instead of `error`, which RocksDB raised."""
        text = str(error)
        # A missing table means that another thread is opening the database again.
        if isinstance(error, DbClosedError | KeyError):
            return RetriableError("cannot use the metadata cache: it is closed")
        if not any(phrase in text for phrase in _CORRUPT_PHRASES):
            return RetriableError("cannot use the metadata cache", reason=text)
        with suppress(OSError):
            (self._directory / _DAMAGE_MARK).touch()
        self.damage = text
        return CorruptError("the metadata cache is damaged", reason=text)


class _RocksDbReader(StoreReader):
    """Reads with iterators. Each sees its table as it was when the iterator was created."""

    def __init__(self, iterators: dict[Table, RdictIter], errors: _ErrorMap) -> None:
        self._iterators = iterators
        self._errors = errors

    def __enter__(self) -> StoreReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._iterators.clear()  # RocksDB's lock is kept while an iterator exists

    def get(self, table: Table, key: bytes) -> bytes | None:
        iterator = self._iterators[table]
        iterator.seek(key)
        if not iterator.valid():
            self._ended(iterator)
        elif iterator.key() == key:
            value: bytes = iterator.value()
            return value
        return None

    def ascending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        iterator = self._iterators[table]
        iterator.seek(start)
        while iterator.valid():
            if (key := iterator.key()) >= end:
                return
            yield key, iterator.value()
            iterator.next()
        self._ended(iterator)

    def descending(self, table: Table, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        iterator = self._iterators[table]
        iterator.seek_for_prev(end)
        if iterator.valid() and iterator.key() == end:
            iterator.prev()
        while iterator.valid():
            if (key := iterator.key()) < start:
                return
            yield key, iterator.value()
            iterator.prev()
        self._ended(iterator)

    def _ended(self, iterator: RdictIter) -> None:
        """Raise the error that ended the iteration; do nothing if the last key ended it."""
        with self._errors:
            iterator.status()


class RocksDbStore(OrderedStore):
    """Represents a database in one directory, which one process uses.

    `damage` is why this object last emptied the directory; "" if it did not.
    """

    def __init__(self, directory: Path, settings: RocksDbSettings | None = None) -> None:
        """Open or create the directory.

        If the directory is locked or the disk fails, `failure` returns the reason until `reopen`
        succeeds. Only the owner may enter the directory, because the cache contains the secret that
        signs requests.
        """
        self._directory = directory
        self._settings = settings or RocksDbSettings()
        self._block_cache = Cache(self._settings.block_cache_bytes)
        self._write_buffers = WriteBufferManager(
            self._settings.write_buffer_bytes, allow_stall=False
        )
        self._write_lock = Lock()
        self._errors = _ErrorMap(directory)
        self._failure = ""
        self._families: dict[Table, Rdict] = {}
        self._handles: dict[Table, ColumnFamily] = {}
        self._db: Rdict | None = None
        self.damage = ""
        with suppress(CorruptError, RetriableError), self._failing_until_opened():
            self._open_or_start_over()

    def get(self, table: Table, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._families[table].get(key)
        except Exception as error:
            raise self._errors.mapped_error(error) from error
        return value

    def batch(self) -> StoreBatch:
        return _RocksDbBatch(self._handles)

    def write(self, batch: StoreBatch) -> None:
        assert isinstance(batch, _RocksDbBatch), "the batch is of another OrderedStore"
        with self._failing_until_opened(), self._write_lock:
            if self._db is None:
                raise RetriableError("cannot use the metadata cache: it is closed")
            self._db.write(batch.changes)

    def read(self, *tables: Table) -> AbstractContextManager[StoreReader]:
        try:
            if len(tables) == 1:  # The iterator's snapshot contains only whole batches.
                iterators = {tables[0]: self._families[tables[0]].iter()}
            else:
                with self._write_lock:  # All iterators must see the same batches.
                    iterators = {table: self._families[table].iter() for table in tables}
        except Exception as error:
            raise self._errors.mapped_error(error) from error
        return _RocksDbReader(iterators, self._errors)

    def size(self) -> StoreSize:
        try:
            counts = {
                table: family.property_int_value("rocksdb.estimate-num-keys") or 0
                for table, family in list(self._families.items())
            }
            disk_bytes = sum(map(_size_of, self._directory.iterdir()))
        except (DbClosedError, OSError):
            return StoreSize()  # The database is being opened again.
        return StoreSize(
            disk_bytes=disk_bytes,
            block_cache_bytes=self._block_cache.get_usage(),
            write_buffer_bytes=self._write_buffers.get_usage(),
            entry_counts=counts,
        )

    def set_bulk_mode(self, *, enabled: bool) -> None:
        changes = merge_options(bulk=enabled)
        with self._failing_until_opened(), self._write_lock:
            for table, options in changes.items():
                self._families[table].set_options(dict(options))

    def failure(self) -> str:
        return self._failure or self._errors.damage

    def reopen(self, before_restart: Callable[[], None] = lambda: None) -> None:
        with self._failing_until_opened(), self._write_lock:
            self._close()
            self._open_or_start_over(before_restart)
            self._failure = ""

    def set_aside(self, topic_id: str) -> str:
        # Kafka's tools print ids with `-` and `_`. Client libraries may use `/`, which a file name
        # cannot contain.
        name = topic_id.replace("+", "-").replace("/", "_")
        kept = self._directory.with_name(f"{self._directory.name}.{name}")
        with self._failing_until_opened(), self._write_lock:
            self._close()
            if kept.exists():
                shutil.rmtree(kept)
            self._directory.rename(kept)
            self._open_or_start_over()
            self._failure = ""
            self._remove_kept_but(kept)
        return str(kept)

    def close(self) -> None:
        with self._write_lock:
            self._close()

    @contextmanager
    def _failing_until_opened(self) -> Iterator[None]:
        try:
            with self._errors:
                yield
        except (CorruptError, RetriableError) as error:
            self._failure = str(error.context.get("reason", error))
            raise

    def _close(self) -> None:
        # RocksDB keeps its lock while a reference to any of these objects exists.
        self._handles.clear()
        closing = [*self._families.values(), *([self._db] if self._db is not None else [])]
        self._families.clear()
        self._db = None
        errors = []
        for each in closing:
            try:
                each.close()
            except Exception as error:  # noqa: BLE001 - the others must be closed, too
                errors.append(error)
        if errors:
            _log.info(LogLine("closed the metadata cache without a flush", error=errors[0]))

    def _remove_kept_but(self, kept: Path) -> None:
        """Remove other directories that were set aside, but not copies made by users."""
        prefix = f"{self._directory.name}."
        for other in self._directory.parent.glob(f"{prefix}*"):
            if other != kept and _TOPIC_ID.fullmatch(other.name.removeprefix(prefix)):
                shutil.rmtree(other, ignore_errors=True)

    def _open_or_start_over(self, before_restart: Callable[[], None] = lambda: None) -> None:
        if self._errors.damage or (self._directory / _DAMAGE_MARK).exists():
            before_restart()
            self._start_over("found damaged while it was in use")
        try:
            self._open()
        except CorruptError as error:
            before_restart()
            self._start_over(str(error))
            self._open()

    def _open(self) -> None:
        families = {
            table.value: table_options(table, self._settings, self._block_cache) for table in Table
        }
        options = database_options(self._settings, self._block_cache, self._write_buffers)
        with self._errors:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(PermissionError):  # Another user owns the directory.
                self._directory.chmod(0o700)
            db = Rdict(str(self._directory), options, column_families=families)
            self._families = {table: db.get_column_family(table.value) for table in Table}
            self._handles = {table: db.get_column_family_handle(table.value) for table in Table}
            self._db = db

    def _start_over(self, reason: str) -> None:
        what = "replaced the damaged metadata cache with an empty one"
        _log.warning(LogLine(what, reason=reason))
        self.damage = reason
        if self._directory.exists():
            shutil.rmtree(self._directory)
        self._errors.damage = ""


def _size_of(file: Path) -> int:
    """Return a file's size; 0 if RocksDB has just removed the file."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
