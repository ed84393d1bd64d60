"""The contract of appends, truncations, joins, deletions and listings in every chunk storage."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    UnsupportedError,
)
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage, Concat
from tests.contract.sources import source_of
from tests.example_counts import examples


def read_all(storage: ChunkStorage, name: str) -> bytes:
    return storage.read_range(name, ByteRange(start_position=0, end_position=1 << 40))


def put(storage: ChunkStorage, *names: str) -> None:
    for name in names:
        storage.create_with_content(name, source_of(name.encode()))


def names_of(storage: ChunkStorage, prefix: str = "", after: str = "") -> list[str]:
    return [info.name for info in storage.list(prefix, after=after)]


def unless_refused(*, has_power: bool, act: Callable[[], None]) -> bool:
    """Run `act` and return True; without the capability, check that the store refuses it."""
    if not has_power:
        with pytest.raises(UnsupportedError):
            act()
        return False
    act()
    return True


_segments = st.text(alphabet="ab.-0é😀ÿ~", min_size=1, max_size=3).filter(
    lambda text: text not in {".", ".."}
)
_names = st.lists(_segments, min_size=1, max_size=3).map("/".join)


class ChunkChangeContract:
    """Runs over the fixture `storage`, an empty chunk storage."""

    def test_create_when_name_is_taken_then_refused(self, storage: ChunkStorage) -> None:
        storage.create("d/a")

        with pytest.raises(AlreadyExistsError):
            storage.create("d/a")

        assert storage.info("d/a").length_bytes == 0

    def test_append_when_at_the_end_then_the_chunk_grows(self, storage: ChunkStorage) -> None:
        def act() -> None:
            storage.append("a", 1, b"bc")
            storage.append("a", 3, memoryview(b"xdx")[1:2])

        put(storage, "a")

        if unless_refused(has_power=storage.capabilities.can_append, act=act):
            assert read_all(storage, "a") == b"abcd"

    @pytest.mark.parametrize("offset_bytes", [0, 2])
    def test_append_when_not_at_the_end_then_refused(
        self, storage: ChunkStorage, offset_bytes: int
    ) -> None:
        put(storage, "a")

        with pytest.raises((CorruptError, UnsupportedError)):
            storage.append("a", offset_bytes, b"x")

        assert read_all(storage, "a") == b"a"

    def test_truncate_when_cut_twice_then_the_same(self, storage: ChunkStorage) -> None:
        def act() -> None:
            storage.truncate("abcd", 2)
            storage.truncate("abcd", 2)

        put(storage, "abcd")

        if unless_refused(has_power=storage.capabilities.can_truncate, act=act):
            assert read_all(storage, "abcd") == b"ab"

    def test_truncate_when_chunk_is_shorter_then_refused(self, storage: ChunkStorage) -> None:
        put(storage, "a")

        with pytest.raises((CorruptError, UnsupportedError)):
            storage.truncate("a", 2)

    def test_concat_when_joined_then_only_the_target_is_left(self, storage: ChunkStorage) -> None:
        put(storage, "a", "b", "c")

        if unless_refused(
            has_power=storage.capabilities.concat is not Concat.NONE,
            act=lambda: storage.concat("a", ["c", "b"]),
        ):
            assert read_all(storage, "a") == b"acb"
            assert names_of(storage) == ["a"]

    @pytest.mark.parametrize("sources", [("a",), ("b", "b")])
    def test_concat_when_a_chunk_would_be_used_twice_then_refused(
        self, storage: ChunkStorage, sources: tuple[str, ...]
    ) -> None:
        put(storage, "a", "b")

        with pytest.raises((InvalidConfigError, UnsupportedError)):
            storage.concat("a", sources)

        assert read_all(storage, "a") == b"a"

    def test_change_when_there_is_no_chunk_then_not_found(self, storage: ChunkStorage) -> None:
        put(storage, "there")

        verbs: tuple[Callable[[], None], ...] = (
            lambda: storage.append("absent", 0, b"x"),
            lambda: storage.truncate("absent", 0),
            lambda: storage.concat("there", ["absent"]),
            lambda: storage.delete("absent"),
        )
        for verb in verbs:
            with pytest.raises((NotFoundError, UnsupportedError)):
                verb()

        assert names_of(storage) == ["there"]

    def test_delete_when_chunk_had_attributes_then_they_are_gone_too(
        self, storage: ChunkStorage
    ) -> None:
        storage.create_with_content("a", source_of(b"1"), attributes={"k": "v"})

        storage.delete("a")

        put(storage, "a")
        assert storage.info("a").attributes == {}

    def test_delete_many_when_some_are_absent_or_bad_then_one_outcome_each_in_order(
        self,
        storage: ChunkStorage,
    ) -> None:
        put(storage, "d/a", "d/b", "d/c")

        outcomes = storage.delete_many(["d/b", "absent", "../bad", "d/a", "d/b"])

        assert [o.name for o in outcomes] == ["d/b", "absent", "../bad", "d/a", "d/b"]
        assert [o.error is None for o in outcomes] == [True, True, False, True, True]
        assert names_of(storage) == ["d/c"]

    def test_discard_uploads_when_chunks_are_complete_or_absent_then_nothing_changes(
        self,
        storage: ChunkStorage,
    ) -> None:
        put(storage, "d/a", "d/b")

        storage.discard_uploads("d/a")
        storage.discard_uploads("absent")

        assert names_of(storage) == ["d/a", "d/b"]

    def test_list_when_prefix_and_after_are_given_then_only_what_lies_between(
        self,
        storage: ChunkStorage,
    ) -> None:
        put(storage, "t-1/0/a", "t-1/0/b", "t-1/1/a", "t-10/0/a", "t-2/0/a", "t-1.x")

        assert names_of(storage, "t-1/") == ["t-1/0/a", "t-1/0/b", "t-1/1/a"]
        assert names_of(storage, "t-1") == ["t-1.x", "t-1/0/a", "t-1/0/b", "t-1/1/a", "t-10/0/a"]
        assert names_of(storage, "t-1/0/", after="t-1/0/a") == ["t-1/0/b"]
        assert names_of(storage, after="t-1/0/zz") == ["t-1/1/a", "t-10/0/a", "t-2/0/a"]
        assert names_of(storage, "t-3") == names_of(storage, "../") == names_of(storage, "/") == []

    def test_list_when_read_in_pages_by_after_then_the_same_as_in_one(
        self, storage: ChunkStorage
    ) -> None:
        put(storage, *(f"d{n % 3}/{n}" for n in range(30)))
        whole = names_of(storage)

        paged: list[str] = []
        while (info := next(storage.list("", after=paged[-1] if paged else ""), None)) is not None:
            paged.append(info.name)

        assert paged == whole
        assert len(whole) == 30

    def test_list_when_chunks_go_meanwhile_then_continues(self, storage: ChunkStorage) -> None:
        put(storage, "a/1", "a/2", "b/1", "c/1")
        listing = storage.list("")
        assert next(listing).name == "a/1"

        storage.delete_many(["a/1", "a/2", "b/1"])

        assert [info.name for info in listing][-1] == "c/1"

    @given(names=st.sets(_names, max_size=8), prefix=_names, after=_names)
    @settings(
        max_examples=examples(1 / 4),
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    def test_list_when_names_are_any_then_in_the_order_of_their_bytes(
        self, storage: ChunkStorage, names: set[str], prefix: str, after: str
    ) -> None:
        # A store of files cannot have a chunk and a directory of one name.
        names = {n for n in names if not any(other.startswith(f"{n}/") for other in names)}
        put(storage, *names)
        wanted = sorted(names, key=str.encode)
        try:
            for start in (prefix, prefix[:1], f"{prefix}/"):
                assert names_of(storage, start) == [n for n in wanted if n.startswith(start)]
            assert names_of(storage, after=after) == [
                n for n in wanted if n.encode() > after.encode()
            ]
            assert [i.length_bytes for i in storage.list("")] == [len(n.encode()) for n in wanted]
        finally:
            storage.delete_many(tuple(names))
