from __future__ import annotations

import gc
import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from rlmm.cache.ordered_store import StoreSize, Table
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.cache.rocksdb_options import RocksDbSettings
from rsm.segment.errors import CorruptError, RetriableError
from tests.services.waiting import wait_until

ROW = (Table.SEGMENTS, b"key")


def written(directory: Path, *, flushed: bool = True) -> Path:
    """Return the directory of a closed store, with a row in a table file or in the log."""
    store = RocksDbStore(directory)
    batch = store.batch()
    batch.put(*ROW, b"value")
    store.write(batch)
    if flushed:
        store._families[Table.SEGMENTS].flush()
    del batch
    store.close()
    return directory


def rows_after_opening(directory: Path) -> tuple[bytes | None, str]:
    store = RocksDbStore(directory)
    found = store.get(*ROW)
    store.close()
    return found, store.damage


@pytest.mark.parametrize("flushed", [True, False])
def test_store_when_opened_again_then_holds_what_was_written(tmp_path: Path, flushed: bool) -> None:
    directory = written(tmp_path / "cache", flushed=flushed)

    assert rows_after_opening(directory) == (b"value", "")


def test_store_when_its_directory_is_lost_then_is_created_again(tmp_path: Path) -> None:
    """Scenario 36."""
    assert rows_after_opening(tmp_path / "a" / "cache") == (None, "")


def _break_current(directory: Path) -> None:
    (directory / "CURRENT").write_text("junk")


def _cut_manifest(directory: Path) -> None:
    manifest = next(directory.glob("MANIFEST-*"))
    manifest.write_bytes(manifest.read_bytes()[:50])


def _lose_manifest(directory: Path) -> None:
    next(directory.glob("MANIFEST-*")).unlink()


def _lose_tables(directory: Path) -> None:
    for table in directory.glob("*.sst"):
        table.unlink()


def _break_tables(directory: Path) -> None:
    for table in directory.glob("*.sst"):
        table.write_bytes(bytes(len(table.read_bytes())))


@pytest.mark.parametrize(
    "damage", [_break_current, _cut_manifest, _lose_manifest, _lose_tables, _break_tables]
)
def test_store_when_its_directory_is_damaged_then_is_started_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    directory = written(tmp_path / "cache")
    damage(directory)

    found, reason = rows_after_opening(directory)

    assert found is None
    assert reason


def test_store_when_found_damaged_while_running_then_the_next_start_begins_again(
    tmp_path: Path,
) -> None:
    directory = with_a_damaged_block(tmp_path / "cache")
    store = RocksDbStore(directory)

    with pytest.raises(CorruptError):
        store.get(*ROW)

    store.close()
    assert rows_after_opening(directory) == (None, "found damaged while it was in use")


def test_store_when_a_read_finds_damage_then_fails_until_it_is_started_again(
    tmp_path: Path,
) -> None:
    """The error is reported before any query can see an empty cache."""
    store = RocksDbStore(with_a_damaged_block(tmp_path / "cache"))
    with pytest.raises(CorruptError):
        store.get(*ROW)
    found_before: list[object] = [store.failure()]

    def before_restart() -> None:
        with pytest.raises(RetriableError):
            store.get(*ROW)
        found_before.append("found")

    store.reopen(before_restart)

    assert "Corruption" in str(found_before[0])
    assert found_before[1:] == ["found"]
    assert (store.failure(), store.get(*ROW)) == ("", None)
    store.close()
    assert rows_after_opening(tmp_path / "cache") == (None, "")


def with_a_damaged_block(directory: Path) -> Path:
    """Damage a block of data, which is not read at the start."""
    for table in written(directory).glob("*.sst"):
        data = bytearray(table.read_bytes())
        data[1] ^= 0xFF
        table.write_bytes(data)
    return directory


def test_store_when_of_a_version_with_other_tables_then_is_started_again(tmp_path: Path) -> None:
    """Scenario 36: the topic holds all that was in it, so an upgrade needs no migration."""
    directory = written(tmp_path / "cache")
    families = {name: Options(raw_mode=True) for name in (*(t.value for t in Table), "by_name")}
    options = Options(raw_mode=True)
    options.create_missing_column_families(True)  # noqa: FBT003 - positional only
    Rdict(str(directory), options, column_families=families).close()

    found, reason = rows_after_opening(directory)

    assert found is None
    assert "by_name" in reason


def test_store_when_another_holds_the_directory_then_waits_until_it_leaves(
    tmp_path: Path,
) -> None:
    holder = RocksDbStore(tmp_path / "cache")
    store = RocksDbStore(tmp_path / "cache")
    reason = store.failure()
    with pytest.raises(RetriableError):
        store.get(*ROW)
    holder.close()

    store.reopen()

    assert "lock" in reason
    assert (store.failure(), store.get(*ROW)) == ("", None)
    store.close()


def test_store_when_the_place_is_a_file_then_is_left_alone(tmp_path: Path) -> None:
    partition_key = tmp_path / "cache"
    partition_key.write_text("somebody's")

    store = RocksDbStore(partition_key)

    assert store.failure()
    assert store.size() == StoreSize()
    assert partition_key.read_text() == "somebody's"


def test_store_when_closed_then_releases_its_lock(tmp_path: Path) -> None:
    """The lock stays held while any handle of a column family is alive."""
    first = RocksDbStore(tmp_path / "cache")
    with first.read(Table.SEGMENTS) as reader:
        assert reader.get(*ROW) is None
    del reader
    gc.collect()
    first.close()

    second = RocksDbStore(tmp_path / "cache")

    second.close()


@contextmanager
def no_file_larger_than(limit_bytes: int) -> Iterator[None]:
    """Make writes to a growing file fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def put(store: RocksDbStore, key: bytes, value: bytes) -> None:
    batch = store.batch()
    batch.put(Table.SEGMENTS, key, value)
    store.write(batch)


def test_store_when_the_disk_refuses_then_can_be_written_again_once_opened_again(
    tmp_path: Path,
) -> None:
    """RocksDB refuses writes even after there is space again; nothing written before is lost."""
    store = RocksDbStore(written(tmp_path / "cache"))
    with no_file_larger_than(1 << 16), pytest.raises(RetriableError):
        put(store, b"large", bytes(1 << 20))
    assert store.failure()

    store.reopen()

    put(store, b"after", b"value")
    assert store.failure() == ""
    assert (store.get(*ROW), store.get(Table.SEGMENTS, b"after")) == (b"value", b"value")
    store.close()


def test_store_when_the_disk_is_full_at_the_start_then_opens_once_there_is_space(
    tmp_path: Path,
) -> None:
    """The process starts not ready; earlier data is not lost."""
    directory = written(tmp_path / "cache")
    with no_file_larger_than(0):
        store = RocksDbStore(directory)
        reason = store.failure()
        with pytest.raises(RetriableError):
            store.reopen()

    store.reopen()

    assert reason
    assert (store.failure(), store.get(*ROW)) == ("", b"value")
    store.close()


def test_store_when_rows_are_read_then_shows_disk_and_memory_within_its_bounds(
    tmp_path: Path,
) -> None:
    settings = RocksDbSettings(block_cache_bytes=1 << 20, write_buffer_bytes=1 << 20)
    store = RocksDbStore(tmp_path / "cache", settings)
    for number in range(4_000):
        put(store, b"%d" % number, random.Random(number).randbytes(1_000))
    for number in range(4_000):
        store.get(Table.SEGMENTS, b"%d" % number)

    size = store.size()

    assert size.disk_bytes > 1 << 20
    assert 0 < size.block_cache_bytes <= 2 * settings.block_cache_bytes
    assert 0 < size.write_buffer_bytes <= 3 * settings.write_buffer_bytes
    store.close()


def test_store_when_a_view_was_used_before_then_can_be_opened_again(tmp_path: Path) -> None:
    """A thread that still refers to a closed view does not hold RocksDB's lock."""
    store = RocksDbStore(written(tmp_path / "cache"))
    with store.read(Table.SEGMENTS) as reader:
        assert list(reader.ascending(Table.SEGMENTS, b"", b"z")) == [(b"key", b"value")]

    store.reopen()

    assert reader is not None
    assert store.get(*ROW) == b"value"
    store.close()


def test_store_when_set_aside_then_is_empty_and_only_the_last_is_kept(tmp_path: Path) -> None:
    """Scenario 37: bounded; a directory that the user moved aside is not changed."""
    first, second = "A/" * 11, "B" * 22
    (tmp_path / "cache.mine").mkdir()
    store = RocksDbStore(written(tmp_path / "cache"))
    store.set_aside(first)
    put(store, b"second", b"value")

    kept = store.set_aside(second)

    assert kept == str(tmp_path / f"cache.{second}")
    assert store.get(Table.SEGMENTS, b"second") is None
    store.close()
    assert {each.name for each in tmp_path.iterdir()} == {"cache", "cache.mine", f"cache.{second}"}
    old = RocksDbStore(tmp_path / f"cache.{second}")
    assert old.get(Table.SEGMENTS, b"second") == b"value"
    old.close()


def unmerged_files(store: RocksDbStore) -> int:
    family = store._families[Table.SEGMENTS]
    return int(family.property_value("rocksdb.num-files-at-level0") or 0)


def store_of_unmerged_files(directory: Path) -> RocksDbStore:
    """Return a store that expects many writes, and so leaves more files unmerged than usual."""
    store = RocksDbStore(directory)
    store.set_bulk_mode(enabled=True)
    for number in range(6):
        put(store, b"%d" % number, b"value")
        store._families[Table.SEGMENTS].flush()
    assert unmerged_files(store) == 6
    return store


def test_store_when_much_was_written_then_its_files_are_merged_after_that(tmp_path: Path) -> None:
    """A search looks into each file that is not merged yet."""
    store = store_of_unmerged_files(tmp_path / "cache")

    store.set_bulk_mode(enabled=False)

    wait_until(lambda: unmerged_files(store) == 0, 10, "merged files")
    store.close()


def test_store_when_it_ended_while_much_was_written_then_merges_once_opened_again(
    tmp_path: Path,
) -> None:
    """The bulk mode is not stored in the directory, so a dead process leaves no setting."""
    store_of_unmerged_files(tmp_path / "cache").close()

    store = RocksDbStore(tmp_path / "cache")

    wait_until(lambda: unmerged_files(store) == 0, 10, "merged files")
    store.close()


def test_store_when_it_learns_what_comes_while_it_cannot_be_used_then_fails_until_opened(
    tmp_path: Path,
) -> None:
    holder = RocksDbStore(tmp_path / "cache")
    store = RocksDbStore(tmp_path / "cache")
    with pytest.raises(RetriableError):
        store.set_bulk_mode(enabled=True)
    reason = store.failure()
    holder.close()

    store.reopen()

    store.set_bulk_mode(enabled=True)
    assert (bool(reason), store.failure()) == (True, "")
    store.close()


@pytest.mark.parametrize("mode_before", [None, 0o755])
def test_directory_when_opened_then_no_other_user_can_search_it(
    tmp_path: Path, mode_before: int | None
) -> None:
    """The secrets of the cluster are in the metadata, and RocksDB's files have the umask's mode."""
    directory = tmp_path / "manager" / "cache"
    if mode_before is not None:
        directory.mkdir(parents=True)
        directory.chmod(mode_before)

    RocksDbStore(directory).close()

    assert directory.stat().st_mode & 0o777 == 0o700
