"""Wrong contents of a plug-in's layout never finish a copy; its errors are retriable."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import pytest

from rsm.layout.chunked import ChunkedLayout
from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import LogToWrite, ObjectContent, SegmentEncoding, SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.plugins.layout import PluginLayout
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BytesSource, WrappedSource
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import LOG, copied
from tests.plugin_example.rlm_example.layout import LabeledLayout
from tests.unit.rsm.plugins.failures import Failures

Contents = Generator[ObjectContent, StoredObject, None]


class Changed(LabeledLayout):
    """Changes the log's object and the contents after it as a test says."""

    def __init__(
        self,
        *,
        log: Callable[[ObjectContent], ObjectContent] = lambda content: content,
        closing: Callable[[Contents], Contents] = lambda contents: contents,
    ) -> None:
        super().__init__({})
        self._change_log = log
        self._change_closing = closing

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        found = super().encoding(log)
        return SegmentEncoding(
            log_object=self._change_log(found.log_object),
            closing=lambda metadata, companions: self._change_closing(
                found.closing(metadata, companions)
            ),
        )


def open_manager(
    layout: SegmentLayout, failures: Failures
) -> tuple[SegmentStorageManager, MemoryChunkStorage]:
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    plugin = PluginLayout(layout, failures.calls())
    manager = SegmentStorageManager(storage=storage, keys=ObjectKeys(), layouts=[plugin])
    return manager, storage


def without_companion(_contents: Contents) -> Contents:
    yield from ()


def with_one_more(contents: Contents) -> Contents:
    last = next(contents)
    yield last
    yield replace(last, key=f"{last.key}.more")


def another_key(contents: Contents) -> Contents:
    yield replace(next(contents), key="another segment's")


@pytest.mark.parametrize(
    "layout",
    [
        Changed(closing=without_companion),
        Changed(closing=with_one_more),
        Changed(closing=another_key),
        Changed(log=lambda content: replace(content, key="another segment's")),
        Changed(log=lambda content: replace(content, source=BytesSource(content=b"no log"))),
    ],
)
def test_copy_when_the_contents_are_wrong_then_it_does_not_finish_and_leaves_nothing(
    layout: Changed,
) -> None:
    manager, storage = open_manager(layout, Failures())

    with pytest.raises(CorruptError, match="plug-in"):
        copied(manager)

    assert list(storage.list("")) == []


def raising(_contents: Contents) -> Contents:
    yield from ()
    raise KeyError("companion")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisingSource(WrappedSource):
    def chunks(self) -> Iterator[memoryview]:
        yield from self.source.chunks()
        raise KeyError("piece")


@pytest.mark.parametrize(
    ("layout", "method"),
    [
        (Changed(closing=raising), "closing"),
        (
            Changed(log=lambda found: replace(found, source=RaisingSource(source=found.source))),
            "chunks",
        ),
    ],
)
def test_copy_when_the_layout_raises_then_it_is_retriable_and_leaves_nothing(
    layout: Changed, method: str
) -> None:
    failures = Failures()
    manager, storage = open_manager(layout, failures)

    with pytest.raises(RetriableError):
        copied(manager)

    assert failures.counted == [("acme:Tape", method)]
    assert list(storage.list("")) == []


class OfAnotherSegment(LabeledLayout):
    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return super().object_keys(segment_id, base_offset + 1)


class OfOneObject(LabeledLayout):
    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return super().object_keys(segment_id, base_offset)[:1]


class WithoutCompanion(LabeledLayout):
    def decode_companion(self, content: bytes) -> Companion:
        raise ValueError("cannot decode")


def test_plan_when_the_keys_are_of_another_segment_then_retriable() -> None:
    manager, _ = open_manager(OfAnotherSegment({}), Failures())

    with pytest.raises(RetriableError, match="a key names another segment"):
        copied(manager)


def test_plan_when_there_is_no_object_for_the_companions_then_retriable() -> None:
    manager, _ = open_manager(OfOneObject({}), Failures())

    with pytest.raises(RetriableError, match="fewer than two objects"):
        copied(manager)


def test_index_when_the_layout_cannot_decode_then_retriable_and_not_corrupt() -> None:
    failures = Failures()
    manager, _ = open_manager(WithoutCompanion({}), failures)
    metadata = copied(manager)

    with pytest.raises(TieredStorageError) as raised:
        manager.fetch_index(metadata, IndexType.OFFSET)

    assert isinstance(raised.value, RetriableError)
    assert failures.counted == [("acme:Tape", "decode_companion")]


def test_copy_when_the_layout_has_chunks_then_its_log_is_divided() -> None:
    manager, storage = open_manager(ChunkedLayout(max_chunk_bytes=100), Failures())

    stored = copied(manager)

    whole = ByteRange(start_position=0, end_position=len(LOG))
    lengths = [storage.info(each.key).length_bytes for each in stored.objects[:-1]]
    assert lengths == [100] * (len(LOG) // 100) + [len(LOG) % 100]
    assert manager.fetch_log_segment(stored, whole) == LOG


class Unnumbered(ChunkedLayout):
    """Has chunks, but keys without a number."""

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return RawLayout().object_keys(segment_id, base_offset)


def test_plan_when_chunks_have_no_number_then_retriable() -> None:
    manager, storage = open_manager(Unnumbered(max_chunk_bytes=100), Failures())

    with pytest.raises(RetriableError):
        copied(manager)

    assert list(storage.list("")) == []


def test_layout_when_its_chunks_have_no_bytes_then_it_cannot_be_opened() -> None:
    with pytest.raises(RetriableError):
        PluginLayout(ChunkedLayout(max_chunk_bytes=0), Failures().calls())
