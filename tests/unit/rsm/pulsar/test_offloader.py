from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v2.offload_context import OffloadContext
from rsm.layout.blocks.block_format import MIN_BLOCK_BYTES
from rsm.layout.blocks.ledger_metadata import LedgerEnsemble, LedgerMetadata, LedgerState
from rsm.pulsar.ledger import Ledger
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    UnsupportedError,
)
from rsm.segment.local_segment import BytesSource, ContentSource
from rsm.segment.ranges import ByteRange
from tests.fakes.watched_storage import WatchedStorage
from tests.golden_ledger import (
    BLOCK_BYTES,
    CONTEXT,
    DATA_FILE,
    INDEX_FILE,
    LEDGER_ID,
    UUID_A1,
    manifest,
    put,
)

VERSION = "s3managedledgeroffloaderformatversion"
WHOLE = ByteRange(start_position=0, end_position=1 << 40)


@pytest.fixture
def store() -> WatchedStorage:
    """A store with the golden ledger."""
    store = WatchedStorage()
    put(store)
    return store


def read_all(
    store: WatchedStorage, ledger_id: int = LEDGER_ID, uuid: UUID = UUID_A1
) -> list[bytes]:
    ledger = open_offloader(store).read_offloaded(ledger_id, OffloadContext(uuid=uuid))
    return [data for _, data in ledger.entries()]


def offloaded(*sizes: int, block_bytes: int = 400, first_entry_id: int = 0) -> WatchedStorage:
    """Return a store with ledger 3, whose entries have these sizes."""
    store = WatchedStorage()
    entries = enumerate((bytes([n % 256]) * size for n, size in enumerate(sizes)), first_entry_id)
    open_offloader(store, block_bytes=block_bytes).offload(
        Ledger(ledger_id=3, entries=entries), UUID_A1
    )
    return store


def test_read_offloaded_when_pulsar_wrote_it_then_every_entry_is_there(
    store: WatchedStorage,
) -> None:
    ledger = open_offloader(store).read_offloaded(LEDGER_ID, CONTEXT)

    found = [
        (entry_id, len(data), hashlib.sha256(data).hexdigest())
        for entry_id, data in ledger.entries()
    ]

    assert found == manifest()
    assert ledger.metadata.state is LedgerState.CLOSED
    assert ledger.metadata.ensembles == (
        LedgerEnsemble(
            first_entry_id=0, members=("bookie-0:3181", "bookie-1:3181", "bookie-2:3181")
        ),
    )
    assert dict(ledger.metadata.custom)["application"] == b"pulsar"


def test_offload_when_the_entries_are_pulsars_then_both_objects_are_the_same_bytes(
    store: WatchedStorage,
) -> None:
    ledger = open_offloader(store).read_offloaded(LEDGER_ID, CONTEXT)
    copy = WatchedStorage()

    open_offloader(copy, block_bytes=BLOCK_BYTES).offload(
        Ledger(ledger_id=LEDGER_ID, entries=ledger.entries(), metadata=ledger.metadata),
        UUID_A1,
        {"ManagedLedgerName": "public/default/persistent/orders"},
    )

    assert copy.read_range(DATA_FILE.name, WHOLE) == DATA_FILE.read_bytes()
    assert copy.read_range(INDEX_FILE.name, WHOLE) == INDEX_FILE.read_bytes()
    assert copy.info(DATA_FILE.name).attributes == {
        VERSION: "1",
        "role": "data",
        "managedledgername": "public/default/persistent/orders",
    }
    assert copy.info(INDEX_FILE.name).attributes["role"] == "index"


@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=60),
    block_bytes=st.integers(MIN_BLOCK_BYTES, 700),
    first_entry_id=st.integers(0, 2**62),
    ledger_id=st.integers(0, 2**63 - 1),
    read_buffer_bytes=st.integers(1, 500),
    asked=st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_read_offloaded_when_offloaded_then_the_entries_come_back(
    sizes: list[int],
    block_bytes: int,
    first_entry_id: int,
    ledger_id: int,
    read_buffer_bytes: int,
    asked: tuple[int, int],
) -> None:
    store = WatchedStorage()
    offloader = open_offloader(store, block_bytes=block_bytes, read_buffer_bytes=read_buffer_bytes)
    entries = [(first_entry_id + n, bytes([n]) * size) for n, size in enumerate(sizes)]
    start, end = sorted(min(each, len(sizes)) for each in asked)
    offloader.offload(Ledger(ledger_id=ledger_id, entries=iter(entries)), UUID_A1)

    ledger = offloader.read_offloaded(ledger_id, CONTEXT)
    whole = list(ledger.entries())
    part = list(ledger.entries(first_entry_id + start, first_entry_id + end))
    blocks = list(ledger.blocks())

    assert whole == entries
    assert part == entries[start:end]
    assert sum(block.entry_count for block in blocks) == len(entries)
    # All but the last are exactly a block long, or hold one larger entry.
    for block in blocks[:-1]:
        is_larger = block.entry_count == 1 and not block.padding_bytes
        assert block.header.block_bytes == block_bytes or is_larger


def test_entries_when_read_on_from_the_middle_then_nothing_is_read_twice() -> None:
    store = offloaded(*[100] * 50, block_bytes=10_000)
    ledger = open_offloader(store, read_buffer_bytes=224).read_offloaded(3, CONTEXT)
    list(ledger.entries(0, 20))
    store.reads.clear()

    assert [entry_id for entry_id, _ in ledger.entries(20, 22)] == [20, 21]

    (name, positions), *more = store.reads
    assert name == f"{UUID_A1}-ledger-3"
    assert positions.start_position == 128 + 20 * 112
    assert not more


def test_entries_when_a_ledger_is_large_then_ranges_are_of_the_read_buffers_length(
    store: WatchedStorage,
) -> None:
    ledger = open_offloader(store, read_buffer_bytes=100_000).read_offloaded(LEDGER_ID, CONTEXT)
    store.reads.clear()

    list(ledger.entries())

    assert [len(positions) for _, positions in store.reads[:-1]] == [100_000] * 4


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 181), (5, 4)])
def test_entries_when_the_ledger_has_them_not_then_not_found(
    store: WatchedStorage, start: int, end: int
) -> None:
    ledger = open_offloader(store).read_offloaded(LEDGER_ID, CONTEXT)

    with pytest.raises(NotFoundError):
        ledger.entries(start, end)


def test_offload_when_the_ledger_is_empty_then_the_error_says_what_to_give() -> None:
    ledger = Ledger(ledger_id=3, entries=[])

    with pytest.raises(InvalidConfigError, match=r"found=no entries,.*\. Pass at least one"):
        open_offloader(WatchedStorage()).offload(ledger, UUID_A1)


@pytest.mark.parametrize(
    ("entries", "metadata"),
    [
        ([], None),
        ([(-1, b"a")], None),
        ([(0, b"a"), (2, b"b")], None),
        ([(0, b"a"), (0, b"b")], None),
        ([(2**63, b"a")], None),
        ([(2**63 - 1, b"a"), (2**63, b"b")], None),
        ([(0, b"a")], LedgerMetadata(length_bytes=2, last_entry_id=0)),
        ([(0, b"a")], LedgerMetadata(length_bytes=1, last_entry_id=1)),
        ([(0, b"a")], LedgerMetadata(length_bytes=1, last_entry_id=0, state=LedgerState.OPEN)),
    ],
)
def test_offload_when_it_is_no_closed_ledger_then_refused_and_nothing_is_written(
    entries: list[tuple[int, bytes]], metadata: LedgerMetadata | None
) -> None:
    store = WatchedStorage()

    with pytest.raises(InvalidConfigError):
        open_offloader(store).offload(
            Ledger(ledger_id=3, entries=entries, metadata=metadata), UUID_A1
        )

    assert not list(store.list(""))


def test_offload_when_the_entries_break_after_a_block_then_their_error_and_nothing_is_written() -> (
    None
):
    store = WatchedStorage()

    def entries() -> Iterator[tuple[int, bytes]]:
        yield from ((n, bytes(100)) for n in range(20))
        raise RetriableError("the entries broke")

    with pytest.raises(RetriableError, match="the entries broke"):
        open_offloader(store, block_bytes=400).offload(
            Ledger(ledger_id=3, entries=entries()), UUID_A1
        )

    assert not list(store.list(""))


def test_offload_when_blocks_are_complete_then_the_store_has_taken_them_before_the_next() -> None:
    """No more than one block is kept, however long the ledger is."""
    taken: list[int] = []
    next_entry_id = 0

    class TakingStorage(WatchedStorage):
        def create_with_content(
            self, name: str, source: ContentSource, *, attributes: Mapping[str, str] | None = None
        ) -> int:
            for view in source.chunks():
                taken.append(next_entry_id)
                assert len(view) <= 400
            return 0

    def entries() -> Iterator[tuple[int, bytes]]:
        nonlocal next_entry_id
        for next_entry_id in range(20):
            yield next_entry_id, bytes(100)

    open_offloader(TakingStorage(), block_bytes=400).offload(
        Ledger(ledger_id=3, entries=entries()), UUID_A1
    )

    assert taken[:4] == [2, 4, 6, 8]


def test_offload_when_the_index_cannot_be_written_then_the_data_is_deleted_too() -> None:
    store = WatchedStorage()
    store.create_with_content(f"{UUID_A1}-ledger-3-index", BytesSource(content=b"other"))

    with pytest.raises(AlreadyExistsError):
        open_offloader(store).offload(Ledger(ledger_id=3, entries=[(0, b"a")]), UUID_A1)

    assert [info.name for info in store.list("")] == [f"{UUID_A1}-ledger-3-index"]


def test_delete_offloaded_when_called_twice_then_both_objects_are_gone(
    store: WatchedStorage,
) -> None:
    offloader = open_offloader(store)

    offloader.delete_offloaded(UUID_A1, ledger_id=LEDGER_ID)
    offloader.delete_offloaded(UUID_A1, ledger_id=LEDGER_ID)

    assert not list(store.list(""))
    with pytest.raises(NotFoundError):
        offloader.read_offloaded(LEDGER_ID, CONTEXT)


def test_offloader_when_it_has_no_store_then_every_call_is_refused() -> None:
    """PIP-17: the default implementation throws on any usage."""
    offloader = open_offloader(None)

    calls: tuple[Callable[[], object], ...] = (
        lambda: offloader.offload(Ledger(ledger_id=3, entries=[(0, b"a")]), UUID_A1),
        lambda: offloader.read_offloaded(3, CONTEXT),
        lambda: offloader.delete_offloaded(UUID_A1),
        lambda: offloader.streaming_offload(UUID_A1),
    )
    for call in calls:
        with pytest.raises(UnsupportedError, match="no store is configured"):
            call()


@pytest.mark.parametrize("name", [DATA_FILE.name, INDEX_FILE.name])
@pytest.mark.parametrize("attributes", [{}, {"role": "data"}, {VERSION: "2"}])
def test_read_offloaded_when_user_metadata_lacks_the_version_then_refused(
    store: WatchedStorage, name: str, attributes: Mapping[str, str]
) -> None:
    store.rewrite(name, store.read_range(name, WHOLE), attributes)

    with pytest.raises(CorruptError, match=r"version.*expected=1"):
        read_all(store)


def test_read_offloaded_when_a_store_changed_the_case_of_keys_then_read(
    store: WatchedStorage,
) -> None:
    for name in (DATA_FILE.name, INDEX_FILE.name):
        attributes = {"S3ManagedLedgerOffloaderFormatVersion": "1"}
        store.rewrite(name, store.read_range(name, WHOLE), attributes)

    assert len(read_all(store)) == 180


def test_entries_when_pulsar_gave_up_at_a_large_entry_then_those_before_are_read() -> None:
    """An entry above the block size ends Pulsar's offload early, and it reports success."""
    store = offloaded(100, 100, block_bytes=400)
    data_name, index_name = f"{UUID_A1}-ledger-3", f"{UUID_A1}-ledger-3-index"
    data = bytearray(store.read_range(data_name, WHOLE).ljust(400, b"\xfe"))
    data[12:20] = (400).to_bytes(8, "big")
    data[352:] = bytes.fromhex("fedcdead") * 12
    store.rewrite(data_name, bytes(data) + b"a block of nothing but padding")
    index = bytearray(store.read_range(index_name, WHOLE))
    index[4:8] = (len(index) + 20).to_bytes(4, "big")
    index[8:16] = (400).to_bytes(8, "big")
    index[24:28] = (2).to_bytes(4, "big")
    index[index.index(b"\x20\x01", 32) + 1] = 9  # the last entry's id
    index += (2).to_bytes(8, "big") + (2).to_bytes(4, "big") + (400).to_bytes(8, "big")
    store.rewrite(index_name, bytes(index))
    ledger = open_offloader(store).read_offloaded(3, CONTEXT)

    before = list(ledger.entries(0, 2))

    assert [len(data) for _, data in before] == [100, 100]
    with pytest.raises(CorruptError, match="never written"):
        list(ledger.entries(1, 4))


def test_entries_when_objects_were_cut_anywhere_then_corrupt() -> None:
    store = offloaded(100, 0, 350, 20, 700, 9)
    names = [info.name for info in store.list("")]
    contents = {name: store.read_range(name, WHOLE) for name in names}

    for name in names:
        for length in range(len(contents[name])):
            store.rewrite(name, contents[name][:length])
            with pytest.raises(CorruptError) as raised:
                read_all(store, 3)
            assert {"object", "position", "expected", "found"} <= raised.value.context.keys()
        store.rewrite(name, contents[name])


@given(data=st.data())
def test_entries_when_bits_were_flipped_then_corrupt_or_other_data(data: st.DataObject) -> None:
    """The format has no checksum: changed bytes of an entry's data are returned as they are.

    A block's last entry may seem to be longer by whole 4-byte units of the padding after it.
    """
    sizes = (100, 0, 350, 20, 700, 9)
    store = offloaded(*sizes)
    name = data.draw(st.sampled_from([info.name for info in store.list("")]))
    content = bytearray(store.read_range(name, WHOLE))
    for bit in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=1, max_size=4)):
        content[bit // 8] ^= 1 << bit % 8
    store.rewrite(name, bytes(content))

    found: list[int] | CorruptError
    try:
        found = [len(each) for each in read_all(store, 3)]
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
    store = offloaded(100)
    store.rewrite(f"{UUID_A1}-ledger-3", data)
    with pytest.raises(CorruptError):
        read_all(store, 3)
    store.rewrite(f"{UUID_A1}-ledger-3-index", index)

    with pytest.raises(CorruptError):
        read_all(store, 3)


class FailsAfterTheContent(WatchedStorage):
    """Reads a content to its end, and then does not create the object."""

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        for _ in source.chunks():
            pass
        raise RetriableError("503 Slow Down")


@pytest.mark.parametrize(("has_index", "left"), [(True, 2), (False, 0)])
def test_offload_when_the_store_fails_at_the_end_then_leaves_a_complete_offload_of_this_id(
    *, has_index: bool, left: int
) -> None:
    """**Data loss:** a failed offload must not delete a complete earlier one of this name."""
    store = FailsAfterTheContent()
    names = [f"{UUID_A1}-ledger-3", *([f"{UUID_A1}-ledger-3-index"] if has_index else [])]
    for name in names:
        WatchedStorage.create_with_content(store, name, BytesSource(content=b"earlier"))

    with pytest.raises(RetriableError, match="503"):
        open_offloader(store).offload(Ledger(ledger_id=3, entries=iter([(0, b"a")])), UUID_A1)

    assert len(list(store.list(""))) == left
