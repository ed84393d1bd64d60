"""Reading and writing streamed objects (PIP-76), over a store in memory."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v2.block_stream import EntryPosition
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.layout.block_v2.stream_index import decode_stream_index
from rsm.layout.blocks.ledger_metadata import LedgerState
from rsm.pulsar.offload_handle import OffloadResult, StreamingLimits
from rsm.pulsar.offloader import LedgerOffloader, open_offloader
from rsm.segment.errors import CorruptError, InvalidConfigError, NotFoundError
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage
from tests.fakes.watched_storage import WatchedStorage
from tests.golden_ledger import (
    STREAM_BLOCK_BYTES,
    STREAM_CONTEXT,
    STREAM_FILE,
    STREAM_INDEX_FILE,
    STREAM_UUID,
    StreamedEntry,
    put_stream,
    stream_manifest,
    user_metadata,
)

WHOLE = ByteRange(start_position=0, end_position=1 << 40)
Entries = list[tuple[int, int, bytes]]


def offloader_of(
    store: ChunkStorage, block_bytes: int = 400, read_buffer_bytes: int = 1 << 20
) -> LedgerOffloader:
    return open_offloader(
        store,
        read_buffer_bytes=read_buffer_bytes,
        streaming=StreamingLimits(block_bytes=block_bytes, buffer_bytes=max(1_000, block_bytes)),
    )


def stream(offloader: LedgerOffloader, entries: Entries, uuid: UUID = STREAM_UUID) -> OffloadResult:
    handle = offloader.streaming_offload(uuid)
    for ledger_id, entry_id, data in entries:
        while not handle.offer_entry(ledger_id, entry_id, data):
            handle.wait_for_room(len(data), ledger_id)
    handle.seal()
    return handle.result()


def entries_of(ledger_id: int, first_entry_id: int, *sizes: int) -> Entries:
    return [
        (ledger_id, first_entry_id + number, bytes([number % 256]) * size)
        for number, size in enumerate(sizes)
    ]


def context_of(*uuids: UUID, last_entry_id: int | None = None) -> OffloadContext:
    segments = [OffloadSegment(uuid=uuid) for uuid in uuids]
    segments[-1] = replace(segments[-1], last_entry_id=last_entry_id)
    return OffloadContext(segments=tuple(segments))


@pytest.fixture
def store() -> WatchedStorage:
    """A store with the golden object."""
    store = WatchedStorage()
    put_stream(store)
    return store


def golden_entries(store: ChunkStorage) -> Entries:
    offloader = open_offloader(store)
    return [
        (ledger_id, *entry)
        for ledger_id in (21, 22)
        for entry in offloader.read_offloaded(ledger_id, STREAM_CONTEXT).entries()
    ]


def test_read_offloaded_when_pulsar_wrote_it_then_every_entry_is_there(
    store: WatchedStorage,
) -> None:
    found = [
        StreamedEntry(ledger_id, entry_id, len(data), hashlib.sha256(data).hexdigest())
        for ledger_id, entry_id, data in golden_entries(store)
    ]

    assert found == stream_manifest()


def test_read_offloaded_when_pulsar_wrote_it_then_its_metadata(store: WatchedStorage) -> None:
    ledger = open_offloader(store).read_offloaded(21, STREAM_CONTEXT)

    assert (ledger.ledger_id, ledger.first_entry_id, ledger.last_entry_id) == (21, 0, 35)
    assert ledger.metadata.state is LedgerState.CLOSED
    assert ledger.metadata.length_bytes == 34_917


def test_streaming_offload_when_the_entries_are_pulsars_then_both_objects_are_the_same_bytes(
    store: WatchedStorage,
) -> None:
    copy = WatchedStorage()
    index = decode_stream_index(STREAM_INDEX_FILE.read_bytes(), name="i")
    handle = offloader_of(copy, STREAM_BLOCK_BYTES).streaming_offload(STREAM_UUID)

    for ledger_id, entry_id, data in golden_entries(store):
        handle.wait_for_room(len(data), ledger_id)
        assert handle.offer_entry(ledger_id, entry_id, data)
    handle.seal({ledger.ledger_id: ledger.info for ledger in index.ledgers})

    assert handle.result() == OffloadResult(
        uuid=STREAM_UUID,
        first=EntryPosition(ledger_id=21, entry_id=0),
        last=EntryPosition(ledger_id=22, entry_id=9),
    )
    for path in (STREAM_FILE, STREAM_INDEX_FILE):
        assert copy.read_range(path.name, WHOLE) == path.read_bytes()
        assert copy.info(path.name).attributes == user_metadata(path)


@given(data=st.data())
def test_read_offloaded_when_a_ledger_is_in_several_objects_then_its_entries_come_back(
    data: st.DataObject,
) -> None:
    block_bytes = data.draw(st.integers(140, 700))
    store = WatchedStorage()
    offloader = offloader_of(store, block_bytes, data.draw(st.integers(1, 500)))
    uuids = [UUID(int=number) for number in range(data.draw(st.integers(1, 4)))]
    first = next_entry_id = data.draw(st.integers(0, 2**62))
    expected: list[tuple[int, bytes]] = []
    for uuid in uuids:
        sizes = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=15))
        entries = entries_of(5, next_entry_id, *sizes)
        next_entry_id += len(sizes)
        expected += [(entry_id, content) for _, entry_id, content in entries]
        others = entries_of(3, 0, 7, 7) if data.draw(st.booleans()) else []
        stream(offloader, [*others, *entries, *entries_of(9, 128, 70)], uuid)
    bounds = st.integers(0, len(expected))
    start, end = sorted((data.draw(bounds), data.draw(bounds)))

    ledger = offloader.read_offloaded(5, context_of(*uuids))

    assert list(ledger.entries()) == expected
    assert list(ledger.entries(first + start, first + end)) == expected[start:end]
    assert sum(block.entry_count for block in ledger.blocks()) == len(expected)
    assert ledger.last_entry_id == next_entry_id - 1


@pytest.mark.parametrize("first_entry_id", [127, 128, 129, 1_000])
def test_entries_when_a_segment_begins_late_in_its_ledger_then_from_any_entry(
    first_entry_id: int,
) -> None:
    """From entry 128 on, Pulsar's reader mistakes the next block's magic for a length."""
    store = WatchedStorage()
    offloader = offloader_of(store)
    entries = entries_of(5, first_entry_id, *[100] * 7)
    stream(offloader, entries)
    ledger = offloader.read_offloaded(5, context_of(STREAM_UUID))

    for number in range(7):
        found = list(ledger.entries(first_entry_id + number))
        assert found == [(entry_id, data) for _, entry_id, data in entries[number:]]


def test_entries_when_a_range_is_asked_for_then_no_entry_before_or_after_it(
    store: WatchedStorage,
) -> None:
    """Pulsar's reader ignores the range's start."""
    ledger = open_offloader(store).read_offloaded(21, STREAM_CONTEXT)

    assert [entry_id for entry_id, _ in ledger.entries(9, 16)] == [*range(9, 16)]


def test_entries_when_two_ledgers_have_the_same_ids_then_noted_positions_are_of_their_own(
    store: WatchedStorage,
) -> None:
    offloader = open_offloader(store, read_buffer_bytes=100)
    first, second = (offloader.read_offloaded(each, STREAM_CONTEXT) for each in (21, 22))
    list(first.entries(3, 6))

    assert [len(data) for _, data in second.entries(6, 10)] == [900] * 4
    assert [len(data) for _, data in first.entries(6, 7)] == [1_000]


def test_entries_when_an_entry_is_larger_than_a_block_then_it_and_the_next_are_there() -> None:
    """Pulsar's offload of a whole ledger ends at such an entry, and loses the rest."""
    store = WatchedStorage()
    offloader = offloader_of(store)
    entries = entries_of(5, 0, 10, 261, 100_000, 5)
    stream(offloader, entries)

    found = list(offloader.read_offloaded(5, context_of(STREAM_UUID)).entries())

    assert found == [(entry_id, data) for _, entry_id, data in entries]


def test_streaming_offload_when_first_entries_are_large_then_blocks_are_as_long_as_they_say() -> (
    None
):
    """Pulsar's writer leaves the first entry of each block out of the block's length."""
    store = WatchedStorage()
    stream(offloader_of(store), entries_of(5, 0, 390, 1, 390, 1, 1_000, 260))
    data = store.read_range(str(STREAM_UUID), WHOLE)
    index = decode_stream_index(store.read_range(f"{STREAM_UUID}-index", WHOLE), name="i")

    positions = [block.position for ledger in index.ledgers for block in ledger.blocks]

    assert [data[position : position + 4].hex() for position in positions] == ["26a66d32"] * 6
    ends = [*positions[1:], len(data)]
    lengths = [struct.unpack_from(">q", data, position + 12)[0] for position in positions]
    assert lengths == [end - position for position, end in zip(positions, ends, strict=True)]


def test_read_offloaded_when_the_context_names_the_end_then_no_entry_after_it(
    store: WatchedStorage,
) -> None:
    context = context_of(STREAM_UUID, last_entry_id=20)

    ledger = open_offloader(store).read_offloaded(21, context)

    assert [entry_id for entry_id, _ in ledger.entries()] == [*range(21)]
    with pytest.raises(NotFoundError):
        ledger.entries(0, 22)


def test_read_offloaded_when_the_ledger_has_more_elsewhere_then_up_to_the_objects_end() -> None:
    """Pulsar writes the closed ledger's number of entries into each object that has some of it."""
    store = WatchedStorage()
    offloader = offloader_of(store)
    handle = offloader.streaming_offload(STREAM_UUID)
    for entry in entries_of(5, 7, 1, 2, 3):
        handle.offer_entry(*entry)
    handle.seal()
    handle.result()
    index = decode_stream_index(store.read_range(f"{STREAM_UUID}-index", WHOLE), name="i")
    content = store.read_range(f"{STREAM_UUID}-index", WHOLE)
    info = index.ledgers[0].info
    assert (info.entry_count, info.size_bytes) == (10, 6)
    store.rewrite(f"{STREAM_UUID}-index", content.replace(b"\x08\x05\x10\x0a", b"\x08\x05\x10\x7f"))

    ledger = offloader.read_offloaded(5, context_of(STREAM_UUID))

    assert [entry_id for entry_id, _ in ledger.entries()] == [7, 8, 9]
    late = offloader.read_offloaded(5, context_of(STREAM_UUID, last_entry_id=10))
    with pytest.raises(CorruptError, match="entries are missing"):
        list(late.entries())


def test_read_offloaded_when_two_objects_overlap_then_each_entry_once() -> None:
    store = WatchedStorage()
    offloader = offloader_of(store)
    stream(offloader, entries_of(5, 0, *[10] * 9), UUID(int=1))
    stream(offloader, entries_of(5, 6, *[20] * 4), UUID(int=2))

    ledger = offloader.read_offloaded(5, context_of(UUID(int=1), UUID(int=2)))

    assert [(entry_id, len(data)) for entry_id, data in ledger.entries()] == [
        *((entry_id, 10) for entry_id in range(6)),
        *((entry_id, 20) for entry_id in range(6, 10)),
    ]


def test_read_offloaded_when_entries_are_missing_between_objects_then_corrupt() -> None:
    store = WatchedStorage()
    offloader = offloader_of(store)
    stream(offloader, entries_of(5, 0, 1, 1), UUID(int=1))
    stream(offloader, entries_of(5, 3, 1, 1), UUID(int=2))
    context = context_of(UUID(int=1), UUID(int=2))

    ledger = offloader.read_offloaded(5, context)
    with pytest.raises(CorruptError, match=r"entries are missing.*entry 2"):
        list(ledger.entries())

    first = replace(context.segments[0], last_entry_id=1)
    known = replace(context, segments=(first, context.segments[1]))
    with pytest.raises(CorruptError, match="does not continue"):
        offloader.read_offloaded(5, known)


def test_read_offloaded_when_segments_are_not_in_order_then_corrupt() -> None:
    store = WatchedStorage()
    offloader = offloader_of(store)
    stream(offloader, entries_of(5, 0, 1, 1), UUID(int=1))
    stream(offloader, entries_of(5, 2, 1, 1), UUID(int=2))

    with pytest.raises(CorruptError, match="does not continue"):
        offloader.read_offloaded(5, context_of(UUID(int=2), UUID(int=1)))


def test_read_offloaded_when_the_object_does_not_have_the_ledger_then_corrupt(
    store: WatchedStorage,
) -> None:
    with pytest.raises(CorruptError, match=r"does not contain the ledger.*ledger 23.*21 to 22"):
        open_offloader(store).read_offloaded(23, STREAM_CONTEXT)


@pytest.mark.parametrize(
    "context", [OffloadContext(), OffloadContext(segments=(OffloadSegment(uuid=None),))]
)
def test_read_offloaded_when_the_context_names_no_object_then_refused(
    store: WatchedStorage, context: OffloadContext
) -> None:
    with pytest.raises(InvalidConfigError, match="names no object"):
        open_offloader(store).read_offloaded(21, context)


def test_delete_offloaded_when_called_twice_then_both_objects_are_gone(
    store: WatchedStorage,
) -> None:
    offloader = open_offloader(store, read_buffer_bytes=100)
    list(offloader.read_offloaded(21, STREAM_CONTEXT).entries(0, 3))

    offloader.delete_offloaded(STREAM_UUID)
    offloader.delete_offloaded(STREAM_UUID)

    assert not list(store.list(""))
    with pytest.raises(NotFoundError):
        offloader.read_offloaded(21, STREAM_CONTEXT)


def test_delete_offloaded_when_another_ledger_has_entries_in_it_then_refused(
    store: WatchedStorage,
) -> None:
    """PIP-76: an object is deleted when all of its ledgers are."""
    offloader = open_offloader(store)
    before = list(store.list(""))

    with pytest.raises(InvalidConfigError, match="another ledger"):
        offloader.delete_offloaded(STREAM_UUID, still_used_by=[OffloadContext(), STREAM_CONTEXT])
    kept = list(store.list(""))
    offloader.delete_offloaded(STREAM_UUID, still_used_by=[OffloadContext()])

    assert kept == before
    assert list(store.list("")) == []


def test_verbs_when_driver_metadata_names_another_store_then_refused(
    store: WatchedStorage,
) -> None:
    offloader = open_offloader(store, driver_metadata={"bucket": "ours"})
    other = {"bucket": "theirs"}

    for call in (
        lambda: offloader.streaming_offload(STREAM_UUID, other),
        lambda: offloader.read_offloaded(21, STREAM_CONTEXT, other),
        lambda: offloader.delete_offloaded(STREAM_UUID, other),
    ):
        with pytest.raises(InvalidConfigError, match="another store"):
            call()

    own = {"bucket": "ours", "region": "any"}
    assert offloader.read_offloaded(21, STREAM_CONTEXT, own).last_entry_id == 35


def test_entries_when_objects_were_cut_anywhere_then_corrupt() -> None:
    store, entries = WatchedStorage(), entries_of(5, 300, 100, 0, 350, 20)
    offloader = offloader_of(store)
    stream(offloader, [*entries, *entries_of(6, 0, 9)])
    names = [info.name for info in store.list("")]
    contents = {name: store.read_range(name, WHOLE) for name in names}

    for name in names:
        for length in range(len(contents[name])):
            store.rewrite(name, contents[name][:length])
            with pytest.raises(CorruptError) as raised:
                list(offloader_of(store).read_offloaded(5, context_of(STREAM_UUID)).entries())
            assert {"object", "position", "expected", "found"} <= raised.value.context.keys()
        store.rewrite(name, contents[name])


@given(data=st.data())
def test_entries_when_bits_were_flipped_then_corrupt_or_other_data(data: st.DataObject) -> None:
    """The format has no checksum, so changed data of an entry is returned as it is."""
    sizes = (100, 0, 350, 20, 700, 9)
    store = WatchedStorage()
    stream(offloader_of(store), [*entries_of(5, 0, *sizes), *entries_of(6, 0, 5)])
    name = data.draw(st.sampled_from([info.name for info in store.list("")]))
    content = bytearray(store.read_range(name, WHOLE))
    for bit in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=1, max_size=4)):
        content[bit // 8] ^= 1 << bit % 8
    store.rewrite(name, bytes(content))

    found: list[int] | CorruptError
    try:
        ledger = offloader_of(store).read_offloaded(5, context_of(STREAM_UUID))
        found = [len(each) for _, each in ledger.entries()]
    except CorruptError as error:
        found = error

    if isinstance(found, CorruptError):
        assert {"object", "position", "expected", "found"} <= found.context.keys()
    else:
        grown = [length - size for length, size in zip(found, sizes, strict=True)]
        assert all(each >= 0 and each % 4 == 0 for each in grown)


@given(index=st.binary(max_size=200), data=st.binary(max_size=200))
def test_read_offloaded_when_the_objects_are_foreign_then_corrupt(
    index: bytes, data: bytes
) -> None:
    store = WatchedStorage()
    put_stream(store)
    store.rewrite(STREAM_FILE.name, data)
    with pytest.raises(CorruptError):
        open_offloader(store).read_offloaded(21, STREAM_CONTEXT)
    store.rewrite(STREAM_INDEX_FILE.name, index)

    with pytest.raises(CorruptError):
        open_offloader(store).read_offloaded(21, STREAM_CONTEXT)


def test_read_offloaded_when_user_metadata_lacks_the_version_then_refused(
    store: WatchedStorage,
) -> None:
    store.rewrite(STREAM_FILE.name, STREAM_FILE.read_bytes(), {})

    with pytest.raises(CorruptError, match=r"version.*expected=1"):
        open_offloader(store).read_offloaded(21, STREAM_CONTEXT)


class VastStorage(WatchedStorage):
    """The golden object as if its second ledger were after 3 GiB that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        put_stream(self)
        index = bytearray(STREAM_INDEX_FILE.read_bytes())
        self.gap = 3 << 30
        # The first ledger's last block is longer, and so the second ledger begins later.
        for at in (8, len(index) - 28, len(index) - 8):
            (position,) = struct.unpack_from(">q", index, at)
            struct.pack_into(">q", index, at, position + self.gap)
        self.rewrite(STREAM_INDEX_FILE.name, bytes(index))

    def info(self, name: str) -> ChunkInfo:
        found = super().info(name)
        if name == STREAM_FILE.name:
            return replace(found, length_bytes=found.length_bytes + self.gap)
        return found

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        if name == STREAM_FILE.name and positions.start_position >= 41_908:
            positions = ByteRange(
                start_position=positions.start_position - self.gap,
                end_position=positions.end_position - self.gap,
            )
        return super().read_range(name, positions)


def test_entries_when_the_object_is_longer_than_2_gib_then_read() -> None:
    """Pulsar's writer adds block lengths up in an int."""
    ledger = open_offloader(VastStorage()).read_offloaded(22, STREAM_CONTEXT)

    assert [len(data) for _, data in ledger.entries()] == [900] * 10


def test_streaming_offload_when_there_are_many_blocks_then_no_recursion() -> None:
    store = WatchedStorage()
    offloader = offloader_of(store, block_bytes=140)
    entries = entries_of(5, 0, *[1] * 3_000)

    stream(offloader, entries)

    found = list(offloader.read_offloaded(5, context_of(STREAM_UUID)).entries())
    assert len(found) == 3_000


def test_streaming_offload_when_the_name_is_taken_then_the_other_object_is_left_alone() -> None:
    store = WatchedStorage()
    store.create_with_content(f"{STREAM_UUID}-index", BytesSource(content=b"other"))

    with pytest.raises(Exception, match="exists"):
        stream(offloader_of(store), entries_of(5, 0, 1))

    assert [info.name for info in store.list("")] == [f"{STREAM_UUID}-index"]
