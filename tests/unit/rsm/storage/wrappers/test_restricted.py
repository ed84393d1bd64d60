from __future__ import annotations

from collections.abc import Callable

import pytest

from rsm.segment.errors import InvalidConfigError, UnsupportedError
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.wrappers.restricted import ReadOnlyChunkStorage
from tests.contract.sources import source_of

CHANGES: tuple[Callable[[ChunkStorage, str], object], ...] = (
    lambda storage, name: storage.create_with_content(name, source_of(b"x")),
    lambda storage, name: storage.create(name),
    lambda storage, name: storage.append(name, 3, b"x"),
    lambda storage, name: storage.truncate(name, 0),
    lambda storage, name: storage.concat(name, ["b"]),
    lambda storage, name: storage.delete(name),
)


@pytest.fixture
def storage() -> ReadOnlyChunkStorage:
    """A storage with two chunks."""
    inner = MemoryChunkStorage(wall_ms=lambda: 0)
    for name in ("a", "b"):
        inner.create_with_content(name, source_of(b"abc"), attributes={"k": name})
    return ReadOnlyChunkStorage(inner)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["a", "new"])
def test_read_only_when_changed_then_refused_and_nothing_changes(
    storage: ReadOnlyChunkStorage, change: Callable[[ChunkStorage, str], object], name: str
) -> None:
    with pytest.raises(UnsupportedError):
        change(storage, name)

    assert [(info.name, info.length_bytes) for info in storage.list("")] == [("a", 3), ("b", 3)]


@pytest.mark.parametrize("change", CHANGES)
def test_read_only_when_the_name_is_none_then_that_is_the_error(
    storage: ReadOnlyChunkStorage, change: Callable[[ChunkStorage, str], object]
) -> None:
    with pytest.raises(InvalidConfigError):
        change(storage, "../a")


def test_read_only_when_many_are_deleted_then_each_is_refused(
    storage: ReadOnlyChunkStorage,
) -> None:
    outcomes = storage.delete_many(["a", "b"])

    assert [type(outcome.error) for outcome in outcomes] == [UnsupportedError] * 2
    assert storage.exists("a")


def test_read_only_when_read_then_as_the_store_inside(storage: ReadOnlyChunkStorage) -> None:
    assert storage.read_range("a", ByteRange(start_position=1, end_position=9)) == b"bc"
    assert storage.info("b").attributes == {"k": "b"}
    assert storage.capabilities.is_read_only
    storage.check_access()
