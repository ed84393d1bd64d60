"""Objects of many segments deleted in bulk from a store that may refuse."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.object_deletion import delete_segments
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper
from tests.metadata_builder import DELETE_STARTED, segment_metadata


def key(number: int, suffix: str = "log") -> str:
    return f"segments/{number}.{suffix}"


def segment(number: int, *, length_bytes: int | None = 1) -> RemoteLogSegmentMetadata:
    objects = tuple(
        StoredObject(key=key(number, suffix), length_bytes=length_bytes)
        for suffix in ("log", "meta")
    )
    return replace(segment_metadata(number, state=DELETE_STARTED), objects=objects)


class RefusingStorage(ChunkStorageWrapper):
    """Refuses to delete some keys, and records the requests in order."""

    def __init__(self, inner: ChunkStorage, *refused: str) -> None:
        super().__init__(inner)
        self._refused = refused
        self.asked: list[Sequence[str]] = []  # names, or a text about uploads

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        self.asked.append(names)
        return tuple(
            DeleteOutcome(name=name, error=RetriableError("refused"))
            if name in self._refused
            else super(RefusingStorage, self).delete_many([name])[0]
            for name in names
        )


def stored(*segments: RemoteLogSegmentMetadata) -> MemoryChunkStorage:
    storage = MemoryChunkStorage(wall_ms=lambda: 1_900_000_000_000)
    for each in segments:
        for one in each.objects:
            storage.create_with_content(one.key, BytesSource(content=b"x"))
    return storage


def test_delete_when_many_then_companions_last_and_only_of_what_is_gone() -> None:
    """A companion must exist as long as one of the objects that it describes."""
    segments = [segment(1), segment(2), segment(3)]
    storage = RefusingStorage(stored(segments[0], segments[1]), key(2))

    results = delete_segments(storage, segments)

    assert [bool(result) for result in results] == [False, True, False]
    assert key(2) in results[1]
    assert storage.asked == [
        [key(1), key(2), key(3)],
        [key(1, "meta"), key(3, "meta")],
    ]
    assert {chunk.name for chunk in storage.list("")} == {key(2), key(2, "meta")}


class UnreachableStorage(ChunkStorageWrapper):
    """Answers no deletion."""

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        raise RetriableError("unreachable")


def test_delete_when_the_store_cannot_be_reached_then_all_but_the_companions_have_failed() -> None:
    segments = [segment(1), segment(2)]
    storage = UnreachableStorage(stored(*segments))

    results = delete_segments(storage, segments)

    assert [list(failures) for failures in results] == [[key(1)], [key(2)]]
    assert str(results[0][key(1)]) == "unreachable"


def test_delete_when_a_companion_is_refused_then_only_that_has_failed() -> None:
    segments = [segment(1), segment(2)]
    storage = RefusingStorage(stored(*segments), key(2, "meta"))

    assert [list(failures) for failures in delete_segments(storage, segments)] == [
        [],
        [key(2, "meta")],
    ]


def test_delete_when_a_segment_has_only_a_companion_then_it_is_deleted() -> None:
    companion_only = replace(segment(1), objects=(StoredObject(key=key(1, "meta")),))
    storage = stored(companion_only)

    assert delete_segments(storage, [companion_only]) == [{}]
    assert list(storage.list("")) == []


def test_delete_log_segment_data_when_the_store_cannot_be_reached_then_names_the_rest() -> None:
    """The SPI requires this, even if the store refuses the whole request."""
    storage = UnreachableStorage(stored(segment(1)))
    manager = SegmentStorageManager(storage=storage, keys=ObjectKeys(), layouts=[RawLayout()])

    with pytest.raises(RetriableError, match="unreachable") as caught:
        manager.delete_log_segment_data(segment(1))

    assert caught.value.context["keys"] == (key(1),)


class UploadsStorage(RefusingStorage):
    """Records whose uploads are discarded, and fails for some."""

    failing: Collection[str] = ()

    def discard_uploads(self, name: str) -> None:
        self.asked.append(f"uploads of {name}")
        if name in self.failing:
            raise RetriableError("too many requests")


def test_delete_when_a_segment_was_never_finished_then_its_uploads_are_discarded_before() -> None:
    """Otherwise a late writer could complete an object after its deletion."""
    segments = [segment(1), segment(2, length_bytes=None)]
    storage = UploadsStorage(stored(*segments))

    assert delete_segments(storage, segments) == [{}, {}]

    assert storage.asked == [
        f"uploads of {key(2)}",
        [key(1), key(2)],
        f"uploads of {key(2, 'meta')}",
        [key(1, "meta"), key(2, "meta")],
    ]


def test_delete_when_uploads_cannot_be_discarded_then_that_object_has_failed_and_no_other() -> None:
    segments = [segment(1, length_bytes=None), segment(2, length_bytes=None)]
    storage = UploadsStorage(stored(*segments))
    storage.failing = {key(1)}

    assert [list(failures) for failures in delete_segments(storage, segments)] == [[key(1)], []]

    assert {chunk.name for chunk in storage.list("")} == {key(1), key(1, "meta")}


def test_delete_when_all_segments_were_finished_then_no_upload_is_looked_for() -> None:
    storage = UploadsStorage(stored(segment(1)))

    delete_segments(storage, [segment(1)])

    assert storage.asked == [[key(1)], [key(1, "meta")]]
