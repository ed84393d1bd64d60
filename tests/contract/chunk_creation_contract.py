"""The contract of creating and reading a chunk in every chunk storage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from crc32c import crc32c

from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
)
from rsm.segment.local_segment import PartBounds
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage
from tests.contract.sources import (
    CountingSource,
    PiecesSource,
    UnsizedSource,
    failing_source,
    source_of,
)

ODD_NAMES = (
    "a",
    "a.b/c.d",
    "with space/and+plus",
    "ünïcode/日本語/😀",
    "percent%2Fsign/../x".replace("..", "..."),
    ".hidden/.file",
    "~/$HOME/*?[x]",
    "back\\slash",
    "topic-1/0/00000000000000000000-id.log",
    "trailing.meta",
    "x.log.meta",
    "x.meta.meta",
    "/".join("d" * 40),
    "n" * 200,
)
BAD_NAMES = ("", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\x00b", "a\nb")


def everything(storage: ChunkStorage) -> list[str]:
    return [info.name for info in storage.list("")]


def read_all(storage: ChunkStorage, name: str) -> bytes:
    return storage.read_range(name, ByteRange(start_position=0, end_position=1 << 40))


class ChunkCreationContract:
    """The fixture `storage` is empty; it may refuse the names in `refused_names`."""

    refused_names: frozenset[str] = frozenset()

    def test_create_with_content_when_it_returns_then_the_chunk_is_whole(
        self, storage: ChunkStorage
    ) -> None:
        checksum = storage.create_with_content("a/b", source_of(b"one", b"", b"three"))

        assert checksum == crc32c(b"onethree")
        assert read_all(storage, "a/b") == b"onethree"

    def test_create_with_content_when_source_is_empty_then_the_chunk_is_empty(
        self,
        storage: ChunkStorage,
    ) -> None:
        assert storage.create_with_content("a", source_of()) == 0
        assert storage.info("a").length_bytes == 0

    def test_create_with_content_when_name_is_taken_then_nothing_changes(
        self, storage: ChunkStorage
    ) -> None:
        storage.create_with_content("a", source_of(b"first"), attributes={"k": "v"})

        with pytest.raises(AlreadyExistsError):
            storage.create_with_content("a", source_of(b"second!"), attributes={"k": "w"})

        assert read_all(storage, "a") == b"first"
        assert storage.info("a").attributes == {"k": "v"}

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_create_with_content_when_name_is_odd_then_it_is_kept_as_it_is(
        self, storage: ChunkStorage, name: str
    ) -> None:
        if name in self.refused_names:
            with pytest.raises(InvalidConfigError):
                storage.create_with_content(name, source_of(b"x"))
            return
        storage.create_with_content(name, source_of(b"x"), attributes={"ключ": "значение"})

        assert everything(storage) == [name]
        assert storage.exists(name)
        assert storage.info(name).attributes == {"ключ": "значение"}
        storage.delete(name)
        assert everything(storage) == []

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_any_verb_when_name_is_none_then_it_is_refused(
        self, storage: ChunkStorage, name: str
    ) -> None:
        for verb in (storage.create, storage.exists, storage.info, storage.delete):
            with pytest.raises(InvalidConfigError):
                verb(name)
        with pytest.raises(InvalidConfigError):
            storage.create_with_content(name, source_of(b"x"))
        with pytest.raises(InvalidConfigError):
            read_all(storage, name)

    @pytest.mark.parametrize("announced_bytes", [0, 5, 7, 1 << 50])
    def test_create_with_content_when_source_lies_about_its_length_then_there_is_no_chunk(
        self, storage: ChunkStorage, announced_bytes: int
    ) -> None:
        lying = PiecesSource(pieces=(b"abc", b"def"), announced_bytes=announced_bytes)

        with pytest.raises(CorruptError):
            storage.create_with_content("a/b", lying, attributes={"k": "v"})

        assert not storage.exists("a/b")
        assert everything(storage) == []

    @pytest.mark.parametrize(
        ("pieces", "parts"),
        [
            ((b"one", b"", b"three"), PartBounds.ANY),
            ((b"one", b""), PartBounds.EACH_CHUNK),
            ((), PartBounds.ANY),
            ((b"",), PartBounds.EACH_CHUNK),
        ],
    )
    def test_create_with_content_when_length_is_unknown_then_the_chunk_is_whole(
        self, storage: ChunkStorage, pieces: tuple[bytes, ...], parts: PartBounds
    ) -> None:
        content = b"".join(pieces)
        unsized = UnsizedSource(source=source_of(*pieces), parts=parts)

        checksum = storage.create_with_content("a/b", unsized, attributes={"k": "v"})

        assert checksum == crc32c(content)
        assert read_all(storage, "a/b") == content
        assert storage.info("a/b").attributes == {"k": "v"}

    def test_create_with_content_when_it_returns_then_every_byte_was_acknowledged(
        self, storage: ChunkStorage
    ) -> None:
        source = CountingSource(pieces=(b"one", b"three", b"four"))

        storage.create_with_content("a", source)

        assert sum(source.accepted) == 12
        assert all(length_bytes > 0 for length_bytes in source.accepted)

    def test_create_with_content_when_unknown_length_and_source_breaks_then_there_is_no_chunk(
        self, storage: ChunkStorage
    ) -> None:
        with pytest.raises(RetriableError, match="the source broke"):
            storage.create_with_content("a/b", UnsizedSource(source=failing_source(b"abc", b"")))

        assert everything(storage) == []

    def test_create_with_content_when_source_breaks_half_way_then_there_is_no_chunk(
        self,
        storage: ChunkStorage,
    ) -> None:
        with pytest.raises(RetriableError, match="the source broke"):
            storage.create_with_content(
                "a/b", failing_source(b"abc", b"def"), attributes={"k": "v"}
            )

        assert everything(storage) == []
        storage.create_with_content("a/b", source_of(b"again"))
        assert read_all(storage, "a/b") == b"again"
        assert storage.info("a/b").attributes == {}

    def test_create_with_content_when_under_way_then_nothing_is_visible(
        self, storage: ChunkStorage
    ) -> None:
        seen: list[bool] = []

        def look(_number: int) -> None:
            seen.append(storage.exists("a") or bool(everything(storage)))

        storage.create_with_content("a", PiecesSource(pieces=(b"x", b"y"), before_piece=look))

        assert seen == [False, False]

    def test_create_with_content_when_many_create_one_name_then_one_of_them_does(
        self,
        storage: ChunkStorage,
    ) -> None:
        together = threading.Barrier(8)

        def create(number: int) -> bool:
            together.wait()
            try:
                storage.create_with_content("d/a", source_of(b"%d" % number), attributes={"n": "1"})
            except AlreadyExistsError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            created = list(pool.map(create, range(8)))

        assert created.count(True) == 1
        assert read_all(storage, "d/a") == b"%d" % created.index(True)

    def test_create_and_delete_when_directories_empty_at_the_same_time_then_both_succeed(
        self,
        storage: ChunkStorage,
    ) -> None:
        def come_and_go(number: int) -> None:
            for turn in range(15):
                name = f"p/q/{number}-{turn}"
                _until_done(partial(storage.create_with_content, name, source_of(b"x")))
                _until_done(partial(storage.delete, name))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(come_and_go, range(4)))

        assert everything(storage) == []

    def test_info_when_chunk_is_there_then_returns_length_age_and_what_the_store_keeps(
        self,
        storage: ChunkStorage,
    ) -> None:
        checksum = storage.create_with_content(
            "a", source_of(b"abc"), attributes={"x": "1", "y": ""}
        )

        info = storage.info("a")

        assert (info.name, info.length_bytes) == ("a", 3)
        assert info.attributes == {"x": "1", "y": ""}
        assert info.last_modified_ms > 1_500_000_000_000
        assert info.crc32c == (checksum if storage.capabilities.has_stored_checksum else None)

    @pytest.mark.parametrize(
        ("start", "end", "expected"),
        [
            (0, 0, b""),
            (0, 4, b"abcd"),
            (2, 4, b"cd"),
            (3, 9, b"def"),
            (6, 9, b""),
            (1 << 40, 1 << 41, b""),
        ],
    )
    def test_read_range_when_range_leaves_the_chunk_then_it_is_cut_at_the_end(
        self, storage: ChunkStorage, start: int, end: int, expected: bytes
    ) -> None:
        storage.create_with_content("a", source_of(b"abcdef"))

        positions = ByteRange(start_position=start, end_position=end)
        read = storage.read_range("a", positions)
        target = bytearray(b"......")
        read_bytes = storage.read_range_into("a", positions, memoryview(target))

        assert read == expected
        assert read_bytes == len(expected)
        assert target == expected.ljust(6, b".")

    def test_reading_when_there_is_no_chunk_then_not_found(self, storage: ChunkStorage) -> None:
        storage.create_with_content("a/b", source_of(b"x"))

        for absent in ("b", "a", "a/c", "a/b/c"):
            assert not storage.exists(absent)
            with pytest.raises(NotFoundError):
                storage.info(absent)
            with pytest.raises(NotFoundError):
                read_all(storage, absent)

    def test_check_access_when_store_is_reachable_then_changes_nothing(
        self, storage: ChunkStorage
    ) -> None:
        storage.check_access()

        assert everything(storage) == []


class ChunkClosingContract:
    """Each test closes the fixture `storage`, so no other test may share it."""

    def test_close_when_called_twice_then_returns(self, storage: ChunkStorage) -> None:
        storage.close()
        storage.close()


def _until_done(act: Callable[[], object]) -> None:
    """Repeat `act`: some servers return retriable errors while others change the directory."""
    for _ in range(20):
        try:
            act()
        except RetriableError:
            continue
        return
    act()
