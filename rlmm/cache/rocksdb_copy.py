"""A copy of a cache that another process may be writing: as of one moment, with its positions.

The other is not disturbed. What is copied is whatever that process had written, wholly or not at
all, record batch by record batch; where in the topic that is stands in the copy. RocksDB's
secondary instances do that: they read the other's files and its log, and write elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

from rlmm.cache.ordered_store import OrderedStore, Table
from rsm.segment.errors import InvalidConfigError, RetriableError, TieredStorageError

_ROWS_AT_ONCE = 10_000
# Without a checkpoint a cache counts as empty: half a copy is never taken for one.
_ORDER = (*(table for table in Table if table is not Table.CHECKPOINT), Table.CHECKPOINT)


def require_cache(directory: Path) -> None:
    """InvalidConfigError if there is no cache in a directory."""
    if not (directory / "CURRENT").is_file():
        raise InvalidConfigError("not a directory of a metadata cache", found=directory)


def copy_cache(source: Path, target: OrderedStore, scratch: Path) -> None:
    """Fill `target`, which is empty, with what is in the directory `source`.

    `scratch` is an empty directory for RocksDB's own files. InvalidConfigError if there is no cache
    of ours in `source`, RetriableError if it cannot be read now.
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
        raise InvalidConfigError("not a metadata cache of this version", missing=min(missing))
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
    """RocksDB's errors, which have no class of their own, as ours."""
    try:
        yield
    except TieredStorageError:
        raise
    except Exception as error:
        raise RetriableError("the metadata cache cannot be read", reason=error) from error


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
