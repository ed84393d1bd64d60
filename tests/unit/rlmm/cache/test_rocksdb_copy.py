"""Copies of caches that are being written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.ordered_store import OrderedStore, Table
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.cache.rocksdb_copy import copy_cache
from rsm.segment.errors import InvalidConfigError, TieredStorageError

_END = b"\xff" * 8


def put(store: OrderedStore, number: int) -> None:
    """Write one batch with a row of each table."""
    batch = store.batch()
    for table in Table:
        batch.put(table, number.to_bytes(4, "big"), table.value.encode())
    store.write(batch)


def rows(store: OrderedStore, table: Table) -> list[tuple[bytes, bytes]]:
    with store.read(table) as reader:
        return list(reader.ascending(table, b"", _END))


def test_copy_when_the_cache_is_in_use_then_whole_as_of_one_moment(tmp_path: Path) -> None:
    """The copy's positions belong to its data."""
    target = MemoryStore()
    with closing(RocksDbStore(tmp_path / "cache")) as store:
        for number in range(3):
            put(store, number)

        copy_cache(tmp_path / "cache", target, tmp_path / "scratch")

        for number in range(3, 6):
            put(store, number)  # the original continues, and its new rows are not in the copy
        assert len(rows(store, Table.SEGMENTS)) == 6
    for table in Table:
        assert rows(target, table) == [
            (number.to_bytes(4, "big"), table.value.encode()) for number in range(3)
        ]


def test_copy_when_the_cache_is_closed_then_the_same(tmp_path: Path) -> None:
    with closing(RocksDbStore(tmp_path / "cache")) as store:
        put(store, 1)

    with closing(RocksDbStore(tmp_path / "copy")) as target:
        copy_cache(tmp_path / "cache", target, tmp_path / "scratch")
        assert [len(rows(target, table)) for table in Table] == [1] * len(Table)


@pytest.mark.parametrize("damaged", ["CURRENT", "MANIFEST-*"])
def test_copy_when_the_cache_is_damaged_then_an_error_of_rlm(tmp_path: Path, damaged: str) -> None:
    with closing(RocksDbStore(tmp_path / "cache")) as store:
        put(store, 1)
    for path in (tmp_path / "cache").glob(damaged):
        path.write_bytes(b"damaged")

    with pytest.raises(TieredStorageError, match="metadata cache"):
        copy_cache(tmp_path / "cache", MemoryStore(), tmp_path / "scratch")


def test_copy_when_it_is_no_cache_then_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="the directory has none"):
        copy_cache(tmp_path, MemoryStore(), tmp_path / "scratch")
