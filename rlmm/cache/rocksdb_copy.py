"""Copies a snapshot of a metadata cache, even while another process writes to the cache.

The copy does not disturb the other process. It contains each batch completely or not at all, and
the matching positions. A RocksDB secondary instance reads the other process's files and log, and
writes to a directory of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

from rlmm.cache.ordered_store import OrderedStore, Table
from rsm.segment.errors import InvalidConfigError, RetriableError, TieredStorageError

_ROWS_AT_ONCE = 10_000
# The checkpoint is copied last: a cache without one counts as empty, so no partial copy is used.
_ORDER = (*(table for table in Table if table is not Table.CHECKPOINT), Table.CHECKPOINT)


def require_cache(directory: Path) -> None:
    """Raise InvalidConfigError if the directory contains no cache."""
    if not (directory / "CURRENT").is_file():
        raise InvalidConfigError(
            "cannot read a metadata cache: the directory has none", path=directory
        )


def copy_cache(source: Path, target: OrderedStore, scratch: Path) -> None:
    """Copy the cache in the directory `source` to the empty `target`.

    `scratch` is an empty directory for RocksDB's files. Raises InvalidConfigError if `source`
    contains no cache of this version, and RetriableError if it cannot be read now.
    """
    require_cache(source)
    with _secondary(source, scratch) as database:
        for table in _ORDER:
            with _errors():
                _copy_table(database.get_column_family(table.value), target, table)


@contextmanager
def _secondary(source: Path, scratch: Path) -> Iterator[Rdict]:
    with _errors():
        found = set(Rdict.list_cf(str(source), Options(raw_mode=True)))
    missing = {table.value for table in Table} - found
    if missing:
        raise InvalidConfigError(
            "cannot read a metadata cache: another version wrote it", missing=min(missing)
        )
    families = {name: Options(raw_mode=True) for name in found}
    with _errors():
        database = Rdict(
            str(source),
            Options(raw_mode=True),
            column_families=families,
            access_type=AccessType.secondary(str(scratch)),
        )
    try:
        yield database
    finally:
        database.close()


@contextmanager
def _errors() -> Iterator[None]:
    """Convert RocksDB's errors, which are plain exceptions, to RetriableError."""
    try:
        yield
    except TieredStorageError:
        raise
    except Exception as error:
        raise RetriableError("cannot read the metadata cache", reason=error) from error


def _copy_table(family: Rdict, target: OrderedStore, table: Table) -> None:
    rows, batch = family.iter(), target.batch()
    rows.seek_to_first()
    count = 0
    while rows.valid():
        batch.put(table, rows.key(), rows.value())
        rows.next()
        count += 1
        if count % _ROWS_AT_ONCE == 0:
            target.write(batch)
            batch = target.batch()
    rows.status()
    target.write(batch)
    family.close()
