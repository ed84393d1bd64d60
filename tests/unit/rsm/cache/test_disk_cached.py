"""The disk tier of the chunk cache: damage, a full disk, restarts, its budget."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.cache.disk_cached import DiskCachedChunkStorage
from rsm.cache.disk_chunks import DiskChunks, DiskChunksSettings, DiskResult, remove_chunks
from rsm.segment.errors import NotFoundError
from rsm.segment.ranges import ByteRange
from tests.contract.sources import source_of
from tests.fakes.clock import FakeClock
from tests.fakes.watched_storage import WatchedStorage

CONTENT = bytes(range(200))


def span(start: int, end: int) -> ByteRange:
    return ByteRange(start_position=start, end_position=end)


def opened(
    directory: Path,
    clock: FakeClock,
    *,
    budget_bytes: int = 1_000,
    results: list[DiskResult] | None = None,
) -> DiskChunks:
    settings = DiskChunksSettings(directory=directory, budget_bytes=budget_bytes)
    return DiskChunks(settings, clock, ([] if results is None else results).append)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def inner() -> WatchedStorage:
    storage = WatchedStorage()
    storage.create_with_content("a", source_of(CONTENT))
    return storage


@pytest.fixture
def results() -> list[DiskResult]:
    return []


@pytest.fixture
def chunks(directory: Path, clock: FakeClock, results: list[DiskResult]) -> DiskChunks:
    return opened(directory, clock, results=results)


@pytest.fixture
def storage(inner: WatchedStorage, chunks: DiskChunks) -> DiskCachedChunkStorage:
    return DiskCachedChunkStorage(inner, chunks)


def test_read_when_asked_again_then_the_store_is_not(
    storage: DiskCachedChunkStorage, inner: WatchedStorage, results: list[DiskResult]
) -> None:
    reads = [storage.read_range("a", span(10, 60)) for _ in range(2)]
    target = bytearray(50)
    storage.read_range_into("a", span(10, 60), memoryview(target))

    assert [*reads, target] == [CONTENT[10:60]] * 3
    assert len(inner.reads) == 1
    assert results == [DiskResult.MISS, DiskResult.HIT, DiskResult.HIT]


def test_read_when_the_process_was_restarted_then_the_store_is_not_asked(
    storage: DiskCachedChunkStorage, inner: WatchedStorage, directory: Path, clock: FakeClock
) -> None:
    storage.read_range("a", span(0, 50))

    again = DiskCachedChunkStorage(inner, opened(directory, clock))

    assert again.read_range("a", span(0, 50)) == CONTENT[:50]
    assert len(inner.reads) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "grown", "gone", "another"])
def test_read_when_the_file_is_damaged_then_it_is_dropped_and_read_again(
    storage: DiskCachedChunkStorage,
    inner: WatchedStorage,
    results: list[DiskResult],
    directory: Path,
    damage: str,
) -> None:
    """Scenario 61: a corrupt cached chunk is detected, dropped, and fetched again."""
    storage.read_range("a", span(0, 50))
    (path,) = directory.iterdir()
    content = path.read_bytes()
    match damage:
        case "flip":
            path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        case "cut":
            path.write_bytes(content[:-7])
        case "empty":
            path.write_bytes(b"")
        case "grown":
            os.truncate(path, 1 << 40)  # larger than any memory
        case "gone":
            path.unlink()
        case _:
            storage.read_range("a", span(50, 100))
            (other,) = set(directory.iterdir()) - {path}
            path.write_bytes(other.read_bytes())

    inner.reads.clear()

    assert storage.read_range("a", span(0, 50)) == CONTENT[:50]
    assert storage.read_range("a", span(0, 50)) == CONTENT[:50]

    assert len(inner.reads) == 1
    assert results.count(DiskResult.CORRUPT) == 1
    assert results[-1] is DiskResult.HIT


def test_read_when_the_disk_fails_then_reads_pass_through_and_it_is_tried_again_later(
    storage: DiskCachedChunkStorage,
    inner: WatchedStorage,
    results: list[DiskResult],
    directory: Path,
    clock: FakeClock,
) -> None:
    """Scenario 98: without its disk the cache is off, and only the store's load grows."""
    directory.rmdir()
    directory.write_bytes(b"no directory any more")

    assert [storage.read_range("a", span(0, 50)) for _ in range(3)] == [CONTENT[:50]] * 3
    assert results.count(DiskResult.DISK_FAILED) == 1
    directory.unlink()
    directory.mkdir()
    clock.advance(60_000)
    for _ in range(3):
        assert storage.read_range("a", span(0, 50)) == CONTENT[:50]

    assert len(inner.reads) == 4
    assert results.count(DiskResult.DISK_FAILED) == 1


def test_forget_when_what_was_read_was_wrong_then_the_store_is_asked_again(
    storage: DiskCachedChunkStorage, inner: WatchedStorage
) -> None:
    """Scenario 62: a chunk with a flipped bit must not be cached."""
    inner.create_with_content("b", source_of(CONTENT))
    for name in ("a", "b"):
        storage.read_range(name, span(0, 50))
    inner.reads.clear()

    storage.forget("a")
    for name in ("a", "b"):
        storage.read_range(name, span(0, 50))

    assert inner.reads == [("a", span(0, 50))]


def test_open_when_the_directory_cannot_be_made_then_reads_pass_through(
    inner: WatchedStorage, tmp_path: Path, clock: FakeClock
) -> None:
    """Scenario 98: also from the start."""
    (tmp_path / "file").touch()
    storage = DiskCachedChunkStorage(inner, opened(tmp_path / "file" / "cache", clock))

    assert storage.read_range("a", span(0, 50)) == CONTENT[:50]


def test_read_when_it_fails_or_ends_early_then_nothing_is_kept(
    storage: DiskCachedChunkStorage, directory: Path
) -> None:
    with pytest.raises(NotFoundError):
        storage.read_range("absent", span(0, 50))
    assert storage.read_range("a", span(190, 250)) == CONTENT[190:]
    assert storage.read_range("a", span(300, 310)) == b""

    assert list(directory.iterdir()) == []


@given(asked=st.lists(st.integers(0, 30), max_size=60), budget_bytes=st.integers(0, 300))
def test_read_when_the_budget_is_any_then_it_is_kept_and_the_last_used_stay(
    tmp_path_factory: pytest.TempPathFactory, asked: list[int], budget_bytes: int
) -> None:
    directory = tmp_path_factory.mktemp("budget")
    inner = WatchedStorage()
    inner.create_with_content("a", source_of(CONTENT))
    chunks = opened(directory, FakeClock(), budget_bytes=budget_bytes)
    storage = DiskCachedChunkStorage(inner, chunks)

    for start in asked:
        assert storage.read_range("a", span(start, start + 43)) == CONTENT[start : start + 43]

        held = sum(path.stat().st_size for path in directory.iterdir())
        assert held == chunks.buffered_bytes <= budget_bytes
    inner.reads.clear()
    for start in list(dict.fromkeys(reversed(asked)))[: budget_bytes // 50]:
        storage.read_range("a", span(start, start + 43))
    assert inner.reads == []


def test_open_when_more_is_there_than_the_budget_then_the_oldest_go_and_halves_too(
    storage: DiskCachedChunkStorage, directory: Path, clock: FakeClock
) -> None:
    for number in range(4):
        storage.read_range("a", span(number, number + 43))
        for path in directory.iterdir():
            os.utime(path, ns=(0, path.stat().st_mtime_ns))
    whole = next(directory.iterdir())
    whole.with_name(f"{whole.name}.1.new").touch()

    chunks = opened(directory, clock, budget_bytes=100)

    assert chunks.buffered_bytes == 100
    assert len(list(directory.iterdir())) == 2
    assert chunks.get("a", span(3, 46)) == CONTENT[3:46]


def test_kept_when_an_earlier_process_left_files_then_their_objects_are_known(
    storage: DiskCachedChunkStorage, inner: WatchedStorage, directory: Path, clock: FakeClock
) -> None:
    """An intact file names the object of a damaged one; a file that names no object is removed."""
    inner.create_with_content("b", source_of(CONTENT))
    for start in (0, 50):
        storage.read_range("a", span(start, start + 50))
    storage.read_range("b", span(0, 50))
    for path in directory.iterdir():
        if path.name.endswith("-0-50"):
            path.write_bytes(path.read_bytes()[:20])

    again = DiskCachedChunkStorage(inner, opened(directory, clock))

    assert (sorted(storage.kept()), sorted(again.kept())) == (["a", "b"], ["a"])
    assert {path.name[:64] for path in directory.iterdir()} == {sha256(b"a").hexdigest()}


def test_forget_when_an_earlier_process_left_files_then_they_go(
    storage: DiskCachedChunkStorage, directory: Path, clock: FakeClock
) -> None:
    for start in (0, 50):
        storage.read_range("a", span(start, start + 50))
    again = opened(directory, clock)

    again.forget("a")

    assert (again.keys(), again.buffered_bytes, list(directory.iterdir())) == ((), 0, [])


def test_open_when_files_of_version_0_1_0_are_there_then_they_go(
    storage: DiskCachedChunkStorage, directory: Path, clock: FakeClock
) -> None:
    """Such files do not name their object, so its deletion could not be noticed."""
    storage.read_range("a", span(0, 50))
    (path,) = directory.iterdir()
    path.write_bytes(path.read_bytes()[: 50 + 4])

    chunks = opened(directory, clock)

    assert (chunks.buffered_bytes, list(directory.iterdir())) == (0, [])


def test_read_when_kept_then_other_users_of_the_host_can_not_read_it(
    inner: WatchedStorage, directory: Path, clock: FakeClock
) -> None:
    """This is so even if version 0.1.0 made the directory."""
    before = os.umask(0o022)
    try:
        directory.mkdir(mode=0o755)
        storage = DiskCachedChunkStorage(inner, opened(directory, clock))
        storage.read_range("a", span(0, 50))
    finally:
        os.umask(before)

    (path,) = directory.iterdir()
    assert [each.stat().st_mode & 0o777 for each in (directory, path)] == [0o750, 0o640]


def test_remove_when_a_cache_left_files_then_the_directory_is_removed_with_them(
    storage: DiskCachedChunkStorage, directory: Path
) -> None:
    storage.read_range("a", span(0, 50))
    remove_chunks(directory)
    remove_chunks(directory)
    assert not directory.exists()


def test_remove_when_other_files_are_there_then_they_stay(
    storage: DiskCachedChunkStorage, directory: Path
) -> None:
    storage.read_range("a", span(0, 50))
    (directory / "notes").touch()
    remove_chunks(directory)
    assert [path.name for path in directory.iterdir()] == ["notes"]


def test_open_when_other_files_are_there_then_they_stay_and_do_not_count(
    directory: Path, clock: FakeClock
) -> None:
    directory.mkdir()
    others = {directory / "notes", directory / "letter.new"}
    for path in others:
        path.write_bytes(bytes(200))

    chunks = opened(directory, clock, budget_bytes=100)

    assert chunks.buffered_bytes == 0
    assert set(directory.iterdir()) == others
