from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.filesystem.store_root import store_error
from tests.contract.sources import PiecesSource, source_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


@pytest.fixture
def storage(root: Path) -> FilesystemChunkStorage:
    return FilesystemChunkStorage(root)


def names_of(storage: ChunkStorage) -> list[str]:
    return [info.name for info in storage.list("")]


def put(storage: ChunkStorage, name: str, **attributes: str) -> None:
    storage.create_with_content(name, source_of(name.encode()), attributes=attributes)


def test_open_when_root_is_missing_then_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="cannot access the store's root"):
        FilesystemChunkStorage(tmp_path / "absent")

    assert list(tmp_path.iterdir()) == []


def test_open_when_root_is_a_file_then_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InvalidConfigError, match="not a directory"):
        FilesystemChunkStorage(tmp_path / "file")


@pytest.mark.parametrize("replaced", [False, True])
def test_any_verb_when_the_mount_vanished_then_retriable_and_nothing_is_made(
    storage: FilesystemChunkStorage, root: Path, *, replaced: bool
) -> None:
    """A file that is missing with its whole file system must not count as deleted."""
    put(storage, "d/a")
    root.rename(root.with_name("elsewhere"))
    if replaced:
        root.mkdir()

    for act in (
        lambda: put(storage, "d/b"),
        lambda: storage.create("d/b"),
        lambda: storage.exists("d/a"),
        lambda: storage.info("d/a"),
        lambda: storage.delete("d/a"),
        lambda: storage.read_range("d/a", ByteRange(start_position=0, end_position=1)),
        lambda: names_of(storage),
        storage.check_access,
    ):
        with pytest.raises(RetriableError, match="root"):
            act()
    (outcome,) = storage.delete_many(["d/a"])
    assert isinstance(outcome.error, RetriableError)
    assert root.exists() == replaced
    assert not replaced or list(root.iterdir()) == []


def test_any_verb_when_the_root_came_back_then_works_again(
    storage: FilesystemChunkStorage, root: Path
) -> None:
    put(storage, "d/a")
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(RetriableError):
        storage.check_access()
    root.with_name("elsewhere").rename(root)

    storage.check_access()

    assert names_of(storage) == ["d/a"]


def test_list_when_the_mount_vanishes_half_way_then_does_not_look_complete(
    storage: FilesystemChunkStorage, root: Path
) -> None:
    put(storage, "a/1")
    put(storage, "b/1")
    listing = storage.list("")
    next(listing)
    root.rename(root.with_name("elsewhere"))

    with pytest.raises(RetriableError):
        list(listing)


def test_create_when_attributes_are_given_then_they_are_next_to_it_as_json(
    storage: FilesystemChunkStorage, root: Path
) -> None:
    put(storage, "d/x.log", role="data")

    assert json.loads((root / "d/x.log.meta").read_bytes()) == {"role": "data"}
    assert names_of(storage) == ["d/x.log"]


def test_list_when_chunks_end_in_meta_then_only_attributes_are_hidden(
    storage: FilesystemChunkStorage,
) -> None:
    put(storage, "x.log", a="1")
    put(storage, "x.meta", a="2")
    put(storage, "y.meta")

    assert names_of(storage) == ["x.log", "x.meta", "y.meta"]
    assert storage.info("x.meta").attributes == {"a": "2"}
    assert storage.info("y.meta").attributes == {}


def test_any_verb_when_name_is_that_of_attributes_then_there_is_no_such_chunk(
    storage: FilesystemChunkStorage,
) -> None:
    put(storage, "x.log", a="1")

    assert not storage.exists("x.log.meta")
    with pytest.raises(NotFoundError):
        storage.delete("x.log.meta")
    with pytest.raises(InvalidConfigError, match="another chunk's attribute file"):
        put(storage, "x.log.meta")
    assert storage.info("x.log").attributes == {"a": "1"}


@pytest.mark.parametrize(("first", "second"), [("x", "x.meta"), ("x.meta", "x")])
def test_create_when_one_chunk_would_be_anothers_attributes_then_refused(
    storage: FilesystemChunkStorage, first: str, second: str
) -> None:
    put(storage, first)

    with pytest.raises(InvalidConfigError, match="attribute"):
        put(storage, second)

    assert names_of(storage) == [first]


def test_info_when_attributes_are_damaged_then_corrupt(
    storage: FilesystemChunkStorage, root: Path
) -> None:
    put(storage, "x", a="1")
    (root / "x.meta").write_bytes(b'{"a": 1}')

    with pytest.raises(CorruptError):
        storage.info("x")


def test_delete_when_last_chunk_is_deleted_then_its_directories_go_but_not_the_root(
    storage: FilesystemChunkStorage, root: Path
) -> None:
    put(storage, "a/b/c/1", k="v")
    put(storage, "a/2")

    storage.delete("a/b/c/1")

    assert sorted(path.name for path in root.iterdir()) == [".incoming", "a"]
    assert [path.name for path in (root / "a").iterdir()] == ["2"]
    storage.delete("a/2")
    assert [path.name for path in root.iterdir()] == [".incoming"]


def test_any_verb_when_a_link_leads_out_then_it_is_not_followed(
    storage: FilesystemChunkStorage, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "directory").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")

    with pytest.raises(InvalidConfigError):
        storage.info("directory/secret")
    with pytest.raises(InvalidConfigError):
        put(storage, "directory/new")
    with pytest.raises(NotFoundError):
        storage.info("file")
    assert names_of(storage) == []
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.parametrize("name", [".incoming/x", "lost+found/x", ".incoming"])
def test_create_when_name_is_the_stores_own_then_refused(
    storage: FilesystemChunkStorage, name: str
) -> None:
    with pytest.raises(InvalidConfigError):
        put(storage, name)


@pytest.mark.parametrize("name", ["n" * 256, "ü" * 128, "/".join(["n" * 200] * 25)])
def test_create_when_name_is_too_long_for_the_file_system_then_refused(
    storage: FilesystemChunkStorage, name: str
) -> None:
    with pytest.raises(InvalidConfigError, match="ENAMETOOLONG"):
        put(storage, name)


def test_create_when_a_chunk_is_where_a_directory_would_be_then_refused(
    storage: FilesystemChunkStorage,
) -> None:
    put(storage, "a/b")

    for name in ("a", "a/b/c"):
        with pytest.raises(InvalidConfigError, match="a chunk and a directory"):
            put(storage, name)
    assert names_of(storage) == ["a/b"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOSPC, RetriableError),
        (errno.EDQUOT, RetriableError),
        (errno.EIO, RetriableError),
        (errno.ESTALE, RetriableError),
        (errno.EACCES, RetriableError),
        (errno.ENAMETOOLONG, InvalidConfigError),
        (errno.EOPNOTSUPP, InvalidConfigError),
    ],
)
def test_store_error_when_a_system_call_fails_then_says_whether_a_retry_may_help(
    code: int, expected: type[TieredStorageError]
) -> None:
    error = store_error(OSError(code, "reason"), "name")

    assert type(error) is expected
    assert error.context["error"] == errno.errorcode[code]


def test_create_when_source_fails_with_an_error_of_the_system_then_it_is_not_the_stores(
    storage: FilesystemChunkStorage,
) -> None:
    def fail(_number: int) -> None:
        raise OSError(errno.EIO, "the source's disk")

    with pytest.raises(OSError, match="the source's disk"):
        storage.create_with_content("a", PiecesSource(pieces=(b"x",), before_piece=fail))

    assert names_of(storage) == []


def test_create_when_content_is_large_then_what_the_disk_wrote_meanwhile_is_whole(
    storage: FilesystemChunkStorage,
) -> None:
    pieces = tuple(bytes([number]) * (3 << 20) for number in range(7))

    storage.create_with_content("large", source_of(*pieces))

    whole = ByteRange(start_position=0, end_position=21 << 20)
    assert storage.read_range("large", whole) == b"".join(pieces)
