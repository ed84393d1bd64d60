"""The contract of copies, fetches and deletions of segments over every chunk storage."""

from __future__ import annotations

from dataclasses import replace

import pytest
from crc32c import crc32c

from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.plugins.calls import PluginCalls, ignore_failure
from rsm.plugins.manager import PluginStorageManager
from rsm.plugins.plugin import ClassName, Plugin
from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    FencedError,
    NotFoundError,
    RetriableError,
    UnsupportedError,
)
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType, RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage
from rsm.transfer import ReadBack
from tests.contract.configured_plugins import plugin_layout
from tests.contract.segments import (
    LOG,
    LOG_PIECES,
    CountedAttempt,
    copied,
    finished,
    planned,
    segment_data,
)
from tests.contract.sources import PiecesSource, failing_source, source_of
from tests.contract.storage_manager_contract import StorageManagerContract

WHOLE = ByteRange(start_position=0, end_position=1 << 40)
MANAGER_CALLS = PluginCalls(
    Plugin(
        class_name=ClassName(module="rsm.manager", name="SegmentStorageManager"),
        key="remote.log.storage.manager.class.name",
        prefix="rsm.config.",
    ),
    ignore_failure,
)


@pytest.fixture(
    params=[
        (RawLayout(), "write"),
        (RawLayout(), "read"),
        (BlockV1Layout(), "write"),
        (BlockV1Layout(block_bytes=220), "read"),
        (BlockV2Layout(), "write"),
        (BlockV2Layout(block_bytes=140), "read"),
        (ChunkedLayout(max_chunk_bytes=100), "write"),
        (ChunkedLayout(max_chunk_bytes=23), "read"),
        (plugin_layout(), "read"),
        (BlockV1Layout(), "plug-in"),
        (ChunkedLayout(max_chunk_bytes=100), "plug-in"),
    ],
    ids=[
        "raw-write",
        "raw-read",
        "block_v1-write",
        "block_v1 with a block for each batch-read",
        "block_v2-write",
        "block_v2 with a block for each batch-read",
        "chunked-write",
        "chunked with tiny chunks-read",
        "plug-in layout-read",
        "plug-in manager",
        "plug-in manager with chunks",
    ],
)
def manager(request: pytest.FixtureRequest, storage: ChunkStorage) -> RemoteStorageManager:
    """A manager for each layout, which verifies the store's answers or also reads back."""
    layout, verify = request.param
    if verify == "plug-in":
        inner = open_manager(storage, layout)
        return PluginStorageManager(inner, MANAGER_CALLS, ReadBack(piece_bytes=150))
    return open_manager(storage, layout, verify=verify)


def open_manager(
    storage: ChunkStorage, *layouts: SegmentLayout, verify: str = "write"
) -> RemoteStorageManager:
    return SegmentStorageManager(
        storage=storage,
        keys=ObjectKeys(prefix="cluster/a"),
        layouts=layouts,
        read_back=ReadBack(piece_bytes=150) if verify == "read" else None,
    )


class TestManager(StorageManagerContract):
    """The tests that do not look into the store."""


def stored_keys(storage: ChunkStorage) -> list[str]:
    return [info.name for info in storage.list("")]


def test_copy_when_it_returns_then_all_planned_objects_are_there_with_their_checksums(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    """Scenario 21: each planned object is written, and nothing else."""
    metadata = planned(manager)

    copied = manager.copy_log_segment_data(metadata, segment_data(), CountedAttempt())
    written = copied.objects

    assert stored_keys(storage) == sorted(metadata.object_keys)
    assert [stored.key for stored in written] == list(metadata.object_keys)
    for stored in written:
        content = storage.read_range(stored.key, WHOLE)
        assert (stored.length_bytes, stored.crc32c) == (len(content), crc32c(content))


def test_plan_when_asked_then_names_follow_the_grammar_and_nothing_is_written(
    storage: ChunkStorage,
) -> None:
    topic = "cluster/a/orders.eu-1-AAAAAAAAAAAAAAAAAAAABw/3"
    ledger = f"{topic}/00000000-0000-0000-0000-000000000001-ledger-1000"

    raw, blocks = (
        [stored.key for stored in planned(open_manager(storage, layout)).objects]
        for layout in (RawLayout(), BlockV1Layout())
    )

    assert raw == [
        f"{topic}/00000000000000001000-AAAAAAAAAAAAAAAAAAAAAQ.log",
        f"{topic}/00000000000000001000-AAAAAAAAAAAAAAAAAAAAAQ.meta",
    ]
    assert blocks == [ledger, f"{ledger}-index", f"{ledger}-companion"]
    assert stored_keys(storage) == []


def test_copy_when_the_log_is_empty_then_stored_in_a_layout_that_holds_it(
    storage: ChunkStorage,
) -> None:
    """Compaction can remove all batches of a segment before the topic is tiered."""
    manager = open_manager(storage, BlockV1Layout(), RawLayout())
    metadata = planned(manager, size_bytes=0)
    empty = segment_data(BytesSource(content=b""))

    copied = manager.copy_log_segment_data(metadata, empty, CountedAttempt())

    stored = finished(metadata, copied)
    assert stored.layout == "raw"
    assert manager.fetch_log_segment(stored, WHOLE) == b""
    assert manager.fetch_index(stored, IndexType.OFFSET) == empty.companions.offset_index
    manager.delete_log_segment_data(stored)
    assert stored_keys(storage) == []


def test_copy_when_fenced_at_any_check_then_nothing_is_left(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    """Scenario 5: the lead is lost during a copy. Scenario 13: its objects are deleted at once."""
    whole = CountedAttempt()
    manager.delete_log_segment_data(copied(manager, attempt=whole))

    for fails_at in range(whole.asked_count):
        attempt = CountedAttempt(error=FencedError("leadership lost"), fails_at=fails_at)
        with pytest.raises(FencedError, match="leadership lost"):
            manager.copy_log_segment_data(planned(manager), segment_data(), attempt)
        assert stored_keys(storage) == []


def test_copy_when_source_breaks_then_its_error_is_raised_and_nothing_is_left(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    with pytest.raises(RetriableError, match="the source broke"):
        manager.copy_log_segment_data(
            planned(manager), segment_data(failing_source(*LOG_PIECES)), CountedAttempt()
        )

    assert stored_keys(storage) == []


@pytest.mark.parametrize(
    "log", [source_of(LOG + b"!"), PiecesSource(pieces=(LOG, b"!"), announced_bytes=len(LOG))]
)
def test_copy_when_segment_is_not_the_one_recorded_then_corrupt_and_nothing_is_left(
    manager: RemoteStorageManager, storage: ChunkStorage, log: PiecesSource
) -> None:
    with pytest.raises(CorruptError):
        manager.copy_log_segment_data(planned(manager), segment_data(log), CountedAttempt())

    assert stored_keys(storage) == []


def test_copy_when_an_object_is_there_already_then_it_is_left_alone(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    metadata = planned(manager)
    log, *_, companion = metadata.objects
    storage.create_with_content(companion.key, source_of(b"someone else's"))

    with pytest.raises(AlreadyExistsError):
        manager.copy_log_segment_data(metadata, segment_data(), CountedAttempt())

    assert not storage.exists(log.key)
    assert storage.read_range(companion.key, WHOLE) == b"someone else's"


def test_fetch_log_segment_when_object_is_shorter_than_recorded_then_corrupt(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    metadata = copied(manager)
    log = metadata.objects[0].key
    content = storage.read_range(log, WHOLE)
    storage.delete(log)
    storage.create_with_content(log, source_of(content[:-1]))

    with pytest.raises(CorruptError, match="shorter than recorded"):
        manager.fetch_log_segment(metadata, WHOLE)
    with pytest.raises(CorruptError, match="shorter than recorded"):
        manager.fetch_log_segment_into(metadata, WHOLE, memoryview(bytearray(len(LOG))))


def test_fetch_log_segment_when_object_is_gone_then_not_found(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    metadata = copied(manager)
    storage.delete(metadata.objects[0].key)

    with pytest.raises(NotFoundError):
        manager.fetch_log_segment(metadata, WHOLE)


def test_fetch_index_when_companion_was_changed_then_corrupt(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    metadata = copied(manager)
    key = metadata.objects[-1].key
    content = bytearray(storage.read_range(key, WHOLE))
    content[40] ^= 1
    storage.delete(key)
    storage.create_with_content(key, source_of(bytes(content)))

    with pytest.raises(CorruptError):
        manager.fetch_index(metadata, IndexType.OFFSET)


def test_fetch_index_when_companion_is_another_segments_then_corrupt(
    manager: RemoteStorageManager,
) -> None:
    one, other = copied(manager, 1), copied(manager, 2)
    mixed = replace(one, objects=(*one.objects[:-1], other.objects[-1]))

    with pytest.raises(CorruptError, match="companion belongs to another segment"):
        manager.fetch_index(mixed, IndexType.OFFSET)


def test_fetch_index_when_asked_again_then_answered_without_the_store(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    metadata = copied(manager)
    manager.fetch_index(metadata, IndexType.OFFSET)
    storage.delete(metadata.objects[-1].key)

    assert manager.fetch_index(metadata, IndexType.TIMESTAMP) == b""


def test_delete_when_called_twice_then_all_objects_are_gone(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    kept, metadata = copied(manager, 1), copied(manager, 2)

    manager.delete_log_segment_data(metadata)
    manager.delete_log_segment_data(metadata)

    assert stored_keys(storage) == sorted(kept.object_keys)
    with pytest.raises(NotFoundError):
        manager.fetch_index(metadata, IndexType.OFFSET)


def test_delete_when_an_object_cannot_be_deleted_then_its_companion_is_kept(
    manager: RemoteStorageManager, storage: ChunkStorage
) -> None:
    metadata = copied(manager)
    bad = (StoredObject(key="../not/a/name"), metadata.objects[-1])

    with pytest.raises(RetriableError, match=r"\.\./not/a/name"):
        manager.delete_log_segment_data(replace(metadata, objects=bad))

    assert storage.exists(metadata.objects[-1].key)


def test_fetch_when_layouts_changed_over_time_then_each_segment_is_read_in_its_own(
    storage: ChunkStorage,
) -> None:
    layouts = [RawLayout(), BlockV1Layout(), BlockV2Layout()]
    managers = [open_manager(storage, *layouts[n:], *layouts[:n]) for n in range(3)]
    segments = [copied(each, number) for number, each in enumerate(managers, start=1)]

    fetched = [each.fetch_log_segment(stored, WHOLE) for each in managers for stored in segments]

    assert [stored.layout for stored in segments] == ["raw", "block_v1", "block_v2"]
    assert fetched == [LOG] * 9


def test_any_call_when_layout_is_unknown_then_unsupported(manager: RemoteStorageManager) -> None:
    metadata = replace(copied(manager), layout="of_tomorrow")

    with pytest.raises(UnsupportedError, match="of_tomorrow"):
        manager.fetch_log_segment(metadata, WHOLE)
    with pytest.raises(UnsupportedError, match="of_tomorrow"):
        manager.fetch_index(metadata, IndexType.OFFSET)


def test_forget_when_something_was_read_then_nothing_of_the_object_is_kept(
    manager: RemoteStorageManager,
) -> None:
    """Scenario 120: cached data can be listed by object, and dropped."""
    metadata = copied(manager)
    manager.fetch_index(metadata, IndexType.OFFSET)
    companion = metadata.objects[-1].key
    kept = set(manager.kept_objects())

    manager.forget([companion, "never read"])

    assert companion in kept <= set(metadata.object_keys)
    assert companion not in manager.kept_objects()
    assert manager.fetch_index(metadata, IndexType.OFFSET) == b"offset index"
