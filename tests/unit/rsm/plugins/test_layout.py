"""Wrong contents of a plug-in's layout never finish a copy; its errors are retriable."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import pytest

from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.layout.segment_layout import ObjectContent
from rsm.manager import SegmentStorageManager
from rsm.plugins.layout import PluginLayout
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BytesSource, LogSegmentData, WrappedSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.spi import IndexType
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import copied
from tests.plugin_example.rlm_example.layout import LabelledLayout
from tests.unit.rsm.plugins.failures import Failures

Contents = Generator[ObjectContent, StoredObject, None]


class Changed(LabelledLayout):
    """Changes the contents as a test says."""

    def __init__(self, change: Callable[[Contents], Contents]) -> None:
        super().__init__({})
        self._change = change

    def contents(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> Contents:
        return self._change(super().contents(metadata, data))


def open_manager(
    layout: LabelledLayout, failures: Failures
) -> tuple[SegmentStorageManager, MemoryChunkStorage]:
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    plugin = PluginLayout(layout, failures.calls())
    manager = SegmentStorageManager(storage=storage, keys=ObjectKeys(), layouts=[plugin])
    return manager, storage


def without_companion(contents: Contents) -> Contents:
    yield next(contents)


def under_another_key(contents: Contents) -> Contents:
    yield replace(next(contents), key="another segment's")


def without_log(contents: Contents) -> Contents:
    stored = yield replace(next(contents), source=BytesSource(content=b"no log"))
    yield contents.send(stored)


def with_one_more(contents: Contents) -> Contents:
    stored = yield next(contents)
    last = contents.send(stored)
    yield last
    yield replace(last, key=f"{last.key}.more")


@pytest.mark.parametrize(
    "change", [without_companion, under_another_key, without_log, with_one_more]
)
def test_copy_when_the_contents_are_wrong_then_it_does_not_finish_and_leaves_nothing(
    change: Callable[[Contents], Contents],
) -> None:
    manager, storage = open_manager(Changed(change), Failures())

    with pytest.raises(CorruptError, match="plug-in"):
        copied(manager)

    assert list(storage.list("")) == []


def raising(contents: Contents) -> Contents:
    yield next(contents)
    raise KeyError("companion")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisingSource(WrappedSource):
    def chunks(self) -> Iterator[memoryview]:
        yield from self.source.chunks()
        raise KeyError("piece")


def with_raising_source(contents: Contents) -> Contents:
    content = next(contents)
    yield replace(content, source=RaisingSource(source=content.source))


@pytest.mark.parametrize(
    ("change", "method"), [(raising, "contents"), (with_raising_source, "chunks")]
)
def test_copy_when_the_layout_raises_then_it_is_retriable_and_leaves_nothing(
    change: Callable[[Contents], Contents], method: str
) -> None:
    failures = Failures()
    manager, storage = open_manager(Changed(change), failures)

    with pytest.raises(RetriableError):
        copied(manager)

    assert failures.counted == [("acme:Tape", method)]
    assert list(storage.list("")) == []


class OfAnotherSegment(LabelledLayout):
    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return super().object_keys(segment_id, base_offset + 1)


class WithoutCompanion(LabelledLayout):
    def decode_companion(self, content: bytes) -> Companion:
        raise ValueError("cannot decode")


def test_plan_when_the_keys_are_of_another_segment_then_retriable() -> None:
    manager, _ = open_manager(OfAnotherSegment({}), Failures())

    with pytest.raises(RetriableError, match="not keys of this segment"):
        copied(manager)


def test_index_when_the_layout_cannot_decode_then_retriable_and_not_corrupt() -> None:
    failures = Failures()
    manager, _ = open_manager(WithoutCompanion({}), failures)
    metadata = copied(manager)

    with pytest.raises(TieredStorageError) as raised:
        manager.fetch_index(metadata, IndexType.OFFSET)

    assert isinstance(raised.value, RetriableError)
    assert failures.counted == [("acme:Tape", "decode_companion")]
