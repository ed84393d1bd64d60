"""The layout `block_v2`: what is written, what Pulsar's reader finds in it, and what is refused."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.layout.block_v2.stream_index import (
    StreamIndex,
    decode_stream_index,
    encode_stream_index,
)
from rsm.layout.blocks.block_format import MIN_BLOCK_BYTES
from rsm.layout.blocks.log_points import CUSTOM_KEY
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    UnsupportedError,
)
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import PlannedObjects
from tests.contract.segments import COMPANIONS, CountedAttempt, finished, planned, segment_data
from tests.contract.sources import source_of
from tests.fakes.watched_storage import WatchedStorage
from tests.unit.rsm.layout.block_v1.test_layout import batches_of

WHOLE = ByteRange(start_position=0, end_position=1 << 40)
Ledger = tuple[int, int, list[bytes]]
"""A ledger's id, its first entry's id, and its batches."""


def ledgers_of(*sizes: Sequence[int], first_entry_ids: Sequence[int] = ()) -> list[Ledger]:
    """Return ledgers; each id is 1000 + the number of batches in the ledgers before."""
    batches = iter(batches_of([size for each in sizes for size in each]))
    starts = accumulate(map(len, sizes), initial=1000)
    firsts = [*first_entry_ids, *([0] * len(sizes))]
    return [
        (start, first, [next(batches) for _ in each])
        for start, first, each in zip(starts, firsts, sizes, strict=False)
    ]


def log_of(ledgers: Sequence[Ledger]) -> bytes:
    return b"".join(batch for _, _, batches in ledgers for batch in batches)


def manager_of(store: WatchedStorage, block_bytes: int) -> SegmentStorageManager:
    layout = BlockV2Layout(block_bytes=block_bytes)
    return SegmentStorageManager(storage=store, keys=ObjectKeys(), layouts=[layout])


def streamed(
    store: WatchedStorage,
    ledgers: Sequence[Ledger],
    *,
    block_bytes: int = 1 << 20,
    cuts: Sequence[int] = (),
) -> tuple[SegmentStorageManager, RemoteLogSegmentMetadata]:
    """Append the ledgers, each cut into pieces at these positions, as a streamer does."""
    manager = manager_of(store, block_bytes)
    metadata = replace(planned(manager), segment_size_bytes=len(log_of(ledgers)))
    names = PlannedObjects(layout=metadata.layout, objects=metadata.objects)
    writer = manager.open_segment_writer(metadata.segment_id, names, CountedAttempt())
    for ledger_id, first_entry_id, batches in ledgers:
        content = b"".join(batches)
        writer.begin_ledger(ledger_id, first_entry_id)
        bounds = sorted({0, *(min(cut, len(content)) for cut in cuts), len(content)})
        for start, end in pairwise(bounds):
            writer.append(memoryview(content)[start:end])
    sealed = finished(metadata, writer.seal(metadata, COMPANIONS))
    store.reads.clear()
    return manager, sealed


def index_of(store: WatchedStorage, metadata: RemoteLogSegmentMetadata) -> StreamIndex:
    key = metadata.objects[1].key
    return decode_stream_index(store.read_range(key, WHOLE), name=key)


def pulsars_entries(
    store: WatchedStorage, metadata: RemoteLogSegmentMetadata, ledger_id: int
) -> list[tuple[int, bytes]]:
    """Return what the offloader reads of a ledger from two objects with Pulsar's bare names."""
    bucket = WatchedStorage()
    for stored in metadata.objects[:2]:
        bucket.create_with_content(
            stored.key.rpartition("/")[2],
            BytesSource(content=store.read_range(stored.key, WHOLE)),
            attributes=store.info(stored.key).attributes,
        )
    context = OffloadContext(segments=(OffloadSegment(uuid=metadata.segment_id.id),))
    found = open_offloader(bucket).read_offloaded(ledger_id, context).entries()
    return [(entry_id, data) for entry_id, data in found]


@given(
    sizes=st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=12), min_size=1, max_size=4),
    first_entry_ids=st.lists(st.integers(0, 200), max_size=4),
    block_bytes=st.integers(MIN_BLOCK_BYTES, 1_500),
    cuts=st.lists(st.integers(0, 4_000), max_size=5),
    ranges=st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 3_000)), max_size=6),
)
def test_stream_when_any_ledgers_come_in_any_pieces_then_read_as_log_and_as_entries(
    sizes: list[list[int]],
    first_entry_ids: list[int],
    block_bytes: int,
    cuts: list[int],
    ranges: list[tuple[int, int]],
) -> None:
    ledgers = ledgers_of(*sizes, first_entry_ids=first_entry_ids)
    log = log_of(ledgers)
    store = WatchedStorage()

    manager, metadata = streamed(store, ledgers, block_bytes=block_bytes, cuts=cuts)

    for start, length in [(0, len(log)), *ranges, *reversed(ranges)]:
        positions = ByteRange(start_position=start, end_position=start + length)
        assert manager.fetch_log_segment(metadata, positions) == log[start : start + length]
    for ledger_id, first_entry_id, batches in ledgers:
        expected = list(enumerate(batches, start=first_entry_id))
        assert pulsars_entries(store, metadata, ledger_id) == expected


def test_stream_when_written_then_pulsars_names_attributes_and_ledger_infos() -> None:
    store = WatchedStorage()
    ledgers = ledgers_of([10, 10], [20], first_entry_ids=[130])
    _, metadata = streamed(store, ledgers, block_bytes=500)
    data, index, companion = metadata.objects

    infos = [each.info for each in index_of(store, metadata).ledgers]

    stem = "orders.eu-1-AAAAAAAAAAAAAAAAAAAABw/3/00000000-0000-0000-0000-000000000001"
    assert [data.key, index.key, companion.key] == [stem, f"{stem}-index", f"{stem}-companion"]
    assert store.info(data.key).attributes == {
        "role": "data",
        "managedledgername": "orders.eu-1-3",
        "s3managedledgeroffloaderformatversion": "1",
    }
    assert [(each.ledger_id, each.entry_count) for each in infos] == [(1000, 132), (1002, 1)]
    assert [each.size_bytes for each in infos] == [sum(map(len, b)) for _, _, b in ledgers]


def test_stream_when_little_data_comes_then_the_last_block_has_no_padding() -> None:
    """An object of a nearly idle partition must not take a whole block of the store."""
    store = WatchedStorage()
    ledgers = ledgers_of([10], [20])
    _, metadata = streamed(store, ledgers, block_bytes=4_000)

    last_bytes = MIN_BLOCK_BYTES + len(ledgers[1][2][0])
    assert metadata.objects[0].length_bytes == 4_000 + last_bytes


def test_copy_when_the_whole_log_is_written_then_one_ledger_from_its_first_batch_on() -> None:
    store = WatchedStorage()
    manager = manager_of(store, 300)
    log = b"".join(batches_of([10, 20, 300]))
    metadata = replace(planned(manager), segment_size_bytes=len(log))

    copied = manager.copy_log_segment_data(metadata, segment_data(source_of(log)), CountedAttempt())
    stored = finished(metadata, copied)

    assert manager.fetch_log_segment(stored, WHOLE) == log
    assert [each.ledger_id for each in index_of(store, stored).ledgers] == [1000]
    assert b"".join(data for _, data in pulsars_entries(store, stored, 1000)) == log


def test_stream_when_a_ledger_is_begun_twice_or_continued_then_its_entries_run_on() -> None:
    first, second = batches_of([10, 20])
    store = WatchedStorage()
    ledgers: list[Ledger] = [(7, 3, []), (9, 5, [first]), (9, 6, [second])]

    manager, metadata = streamed(store, ledgers)

    assert manager.fetch_log_segment(metadata, WHOLE) == first + second
    assert pulsars_entries(store, metadata, 9) == [(5, first), (6, second)]


def test_stream_when_one_ledger_follows_another_then_one_lookup_and_few_reads() -> None:
    store = WatchedStorage()
    ledgers = ledgers_of([1_000] * 400, [1_000] * 400)
    manager, metadata = streamed(store, ledgers, block_bytes=64 << 10)
    log = log_of(ledgers)

    for start in range(0, len(log), 50_000):
        positions = ByteRange(start_position=start, end_position=min(start + 50_000, len(log)))
        manager.fetch_log_segment(metadata, positions)

    assert len(store.reads_of("-index")) == 1
    data = [len(each) for name, each in store.reads if name == metadata.objects[0].key]
    assert sum(data) < 1.15 * len(log)


def test_stream_when_a_ledger_begins_within_a_batch_then_corrupt_with_its_position() -> None:
    (batch,) = batches_of([100])
    ledgers: list[Ledger] = [(1, 0, [batch[:50]]), (2, 0, [batch[50:] + batch])]

    with pytest.raises(CorruptError, match="within a batch") as refused:
        streamed(WatchedStorage(), ledgers)

    assert refused.value.context["position"] == 50


@pytest.mark.parametrize(
    ("second", "message"), [((999, 0), "do not ascend"), ((1000, 5), "not consecutive")]
)
def test_stream_when_ledgers_or_entries_do_not_ascend_then_refused(
    second: tuple[int, int], message: str
) -> None:
    (ledger,) = ledgers_of([10, 10])
    store = WatchedStorage()

    with pytest.raises(InvalidConfigError, match=message):
        streamed(store, [ledger, (*second, batches_of([10]))])

    assert list(store.list("")) == []


def test_copy_when_a_segment_has_no_batches_then_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="without batches"):
        streamed(WatchedStorage(), [])


def test_plan_when_a_segment_is_streamed_then_in_the_layout_of_streams() -> None:
    manager = SegmentStorageManager(
        storage=WatchedStorage(),
        keys=ObjectKeys(),
        layouts=[RawLayout()],
        stream_layout=BlockV2Layout(),
    )
    segment_id = planned(manager).segment_id

    assert manager.plan_objects(segment_id, 1000, size_bytes=1).layout == "raw"
    assert manager.plan_streamed_objects(segment_id, 1000, most_bytes=1).layout == "block_v2"


def test_fetch_when_any_byte_of_the_index_is_changed_then_corrupt_or_the_log() -> None:
    store = WatchedStorage()
    ledgers = ledgers_of([10, 300], [10], first_entry_ids=[130, 0])
    _, metadata = streamed(store, ledgers, block_bytes=300)
    key = metadata.objects[1].key
    content = store.read_range(key, WHOLE)

    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 0x41
        manager, recorded = rewritten(store, metadata, bytes(changed))
        try:
            assert manager.fetch_log_segment(recorded, WHOLE) == log_of(ledgers)
        except CorruptError as error:
            assert_reported(error)


def assert_reported(error: CorruptError) -> None:
    """Check that the error names the position in the index, or the missing range of the data."""
    found = error.context.keys()
    assert found >= {"object", "position", "expected", "found"} or found >= {"key", "wanted"}


def rewritten(
    store: WatchedStorage, metadata: RemoteLogSegmentMetadata, index: bytes
) -> tuple[SegmentStorageManager, RemoteLogSegmentMetadata]:
    """Replace the index, and its record; return a manager that has not read the first one."""
    data, stored, companion = metadata.objects
    store.rewrite(stored.key, index)
    stored = replace(stored, length_bytes=len(index), crc32c=None)
    return manager_of(store, 300), replace(metadata, objects=(data, stored, companion))


@pytest.mark.parametrize(
    "points",
    [None, "", "no base64", "QUJD", b64encode(bytes(24)).decode(), b64encode(bytes(48)).decode()],
    ids=["none", "empty", "other text", "cut short", "first one elsewhere", "not ascending"],
)
def test_fetch_when_a_ledger_has_no_such_points_then_corrupt_at_its_info(
    points: str | None,
) -> None:
    store = WatchedStorage()
    _, metadata = streamed(store, ledgers_of([10], [10], first_entry_ids=[0, 4]), block_bytes=300)
    index = index_of(store, metadata)
    first, second = index.ledgers
    properties = () if points is None else ((CUSTOM_KEY, points),)
    changed = replace(second, info=replace(second.info, properties=properties))
    content = encode_stream_index(replace(index, ledgers=(first, changed)))
    manager, recorded = rewritten(store, metadata, content)

    with pytest.raises(CorruptError, match="point") as refused:
        manager.fetch_log_segment(recorded, WHOLE)

    first_bytes = len(encode_stream_index(replace(index, ledgers=(first,))))
    assert refused.value.context["position"] == first_bytes + 16


def test_fetch_when_points_have_other_characters_between_base64_then_corrupt() -> None:
    """A lenient decoder skips those characters, and would find the right points."""
    store = WatchedStorage()
    _, metadata = streamed(store, ledgers_of([10]))
    index = index_of(store, metadata)
    (ledger,) = index.ledgers
    points = dict(ledger.info.properties)[CUSTOM_KEY]
    info = replace(ledger.info, properties=((CUSTOM_KEY, f"{points[:4]}\n{points[4:]}"),))
    changed = replace(index, ledgers=(replace(ledger, info=info),))
    manager, recorded = rewritten(store, metadata, encode_stream_index(changed))

    with pytest.raises(CorruptError, match="not base64"):
        manager.fetch_log_segment(recorded, WHOLE)


@pytest.mark.parametrize(("entry_count", "size_bytes"), [(None, 200), (1, None), (1, 0)])
def test_fetch_when_an_info_lacks_the_extent_then_corrupt(
    entry_count: int | None, size_bytes: int | None
) -> None:
    store = WatchedStorage()
    _, metadata = streamed(store, ledgers_of([10]))
    index = index_of(store, metadata)
    (ledger,) = index.ledgers
    info = replace(ledger.info, entry_count=entry_count, size_bytes=size_bytes)
    changed = replace(ledger, info=info)
    manager, recorded = rewritten(
        store, metadata, encode_stream_index(replace(index, ledgers=(changed,)))
    )

    with pytest.raises(CorruptError, match="lacks the ledger's extent"):
        manager.fetch_log_segment(recorded, WHOLE)


def test_fetch_when_the_index_is_another_segments_then_corrupt() -> None:
    manager, metadata = streamed(WatchedStorage(), ledgers_of([10], [10]))
    other = replace(metadata, segment_size_bytes=metadata.segment_size_bytes + 1)

    with pytest.raises(CorruptError, match="index belongs to another segment"):
        manager.fetch_log_segment(other, WHOLE)
