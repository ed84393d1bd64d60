"""A wrong result of a plug-in's storage manager never finishes a copy or proves an object whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.plugins.manager import PluginStorageManager
from rsm.segment.errors import (
    CorruptError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange
from rsm.spi import (
    CopiedSegment,
    CopyAttempt,
    IndexType,
    ObjectFault,
    PlannedObjects,
    RemoteStorageManager,
)
from rsm.storage.memory import MemoryChunkStorage
from rsm.transfer import ReadBack
from tests.contract.segments import CountedAttempt, copied, planned, segment_data
from tests.unit.rsm.plugins.failures import Failures

WHOLE = ByteRange(start_position=0, end_position=10)


class Changed(SegmentStorageManager):
    """Stores segments, and changes some results."""

    def __init__(self, answer: Any = None) -> None:
        self.store = MemoryChunkStorage(wall_ms=lambda: 0)
        super().__init__(storage=self.store, keys=ObjectKeys(), layouts=[RawLayout()])
        self.answer = answer

    def check_objects(
        self, metadata: RemoteLogSegmentMetadata, *, read: bool, attempt: CopyAttempt
    ) -> tuple[ObjectFault, ...]:
        return self.answer  # type: ignore[no-any-return]  # what the test says

    def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        return self.answer  # type: ignore[no-any-return]  # what the test says

    def keys(self) -> list[str]:
        return [info.name for info in self.store.list("")]


class Copying(Changed):
    """Copies as a test says."""

    def __init__(self, change: Callable[[CopiedSegment], Any]) -> None:
        super().__init__()
        self._change = change

    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        found = super().copy_log_segment_data(metadata, data, attempt)
        return self._change(found)  # type: ignore[no-any-return]  # what the test says


def with_first(found: CopiedSegment, **fields: Any) -> CopiedSegment:
    return replace(found, objects=(replace(found.objects[0], **fields), *found.objects[1:]))


def without_checksum(found: CopiedSegment) -> CopiedSegment:
    return with_first(found, crc32c=None)


@pytest.mark.parametrize(
    "change",
    [
        lambda _found: None,
        lambda found: replace(found, objects=found.objects[:1]),
        lambda found: replace(found, objects=(*found.objects, found.objects[0])),
        lambda found: replace(found, objects=tuple(reversed(found.objects))),
        lambda found: replace(found, custom_metadata="text"),
        without_checksum,
        lambda found: with_first(found, length_bytes=-1),
        lambda found: with_first(found, crc32c="364b3fb7"),
    ],
)
def test_copy_when_its_result_does_not_describe_the_planned_objects_then_it_does_not_finish(
    change: Callable[[CopiedSegment], Any],
) -> None:
    failures = Failures()
    manager = PluginStorageManager(Copying(change), failures.calls())

    with pytest.raises(RetriableError, match="method=copy_log_segment_data"):
        copied(manager)

    assert failures.counted == [("acme:Tape", "copy_log_segment_data")]


class NotReading(Changed):
    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        stored = tuple(replace(each, length_bytes=1, crc32c=1) for each in metadata.objects)
        return CopiedSegment(objects=stored)


def test_copy_when_the_plug_in_did_not_read_the_log_then_it_does_not_finish() -> None:
    manager = PluginStorageManager(NotReading(), Failures().calls())

    with pytest.raises(CorruptError, match="did not read the whole log"):
        copied(manager)


class Forgetting(Changed):
    def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> bytes:
        return bytes(len(super().fetch_log_segment(metadata, positions)))


def test_copy_when_other_bytes_come_back_then_it_does_not_finish_and_its_objects_are_deleted() -> (
    None
):
    inner = Forgetting()
    manager = PluginStorageManager(inner, Failures().calls(), ReadBack(piece_bytes=100))

    with pytest.raises(CorruptError, match="returns other bytes"):
        copied(manager)

    assert inner.keys() == []


class SharingKeys(Changed):
    def plan_objects(
        self, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        return PlannedObjects(layout="raw", objects=(StoredObject(key="orders/0/log"),))


def test_plan_when_a_key_could_be_of_another_segment_then_nothing_is_copied_there() -> None:
    manager = PluginStorageManager(SharingKeys(), Failures().calls())

    with pytest.raises(RetriableError, match="a key lacks the segment's id"):
        planned(manager)


class WithoutLayout(Changed):
    def plan_objects(
        self, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        found = super().plan_objects(segment_id, base_offset, size_bytes=size_bytes)
        return replace(found, layout=None)  # type: ignore[arg-type]  # a wrong type


def test_plan_when_it_names_no_layout_then_retriable_and_counted() -> None:
    failures = Failures()
    manager = PluginStorageManager(WithoutLayout(), failures.calls())

    with pytest.raises(RetriableError, match="NoneType instead of str"):
        planned(manager)

    assert failures.counted == [("acme:Tape", "plan_objects")]


def test_copy_when_an_object_exists_already_then_it_is_left_alone() -> None:
    inner = Changed()
    manager = PluginStorageManager(inner, Failures().calls())
    metadata = planned(manager)
    inner.store.create(metadata.objects[0].key)

    with pytest.raises(TieredStorageError):
        manager.copy_log_segment_data(metadata, segment_data(), CountedAttempt())

    assert inner.keys() == [metadata.objects[0].key]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        False,
        ("a fault",),
        (ObjectFault(object_key="another segment's", is_missing=True, reason="gone"),),
    ],
)
def test_check_when_its_result_is_wrong_then_it_proves_nothing(answer: object) -> None:
    failures = Failures()
    inner = Changed(answer)
    manager: RemoteStorageManager = PluginStorageManager(inner, failures.calls())
    metadata = copied(manager)

    with pytest.raises(RetriableError):
        manager.check_objects(metadata, read=False, attempt=CountedAttempt())

    assert failures.counted == [("acme:Tape", "check_objects")]


def test_index_when_it_is_no_bytes_then_retriable() -> None:
    manager = PluginStorageManager(Changed("text"), Failures().calls())

    with pytest.raises(RetriableError, match="str instead of bytes"):
        manager.fetch_index(copied(manager), IndexType.OFFSET)


def test_writer_when_opened_of_a_plug_in_then_only_whole_segments_are_stored() -> None:
    manager = PluginStorageManager(Changed(), Failures().calls())
    metadata = planned(manager)
    names = PlannedObjects(layout=metadata.layout, objects=metadata.objects)

    with pytest.raises(UnsupportedError, match="stores only whole segments"):
        manager.open_segment_writer(metadata.segment_id, names, CountedAttempt())
